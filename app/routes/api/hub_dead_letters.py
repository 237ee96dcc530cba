"""Dead letters: lists, replays and deletes them.

Administrators see all dead letters, other users those of their own subscriptions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from starlette.responses import Response

from ....core.message.model import Properties
from ....hub.deadletter.dead_letter import OWN_HEADERS, DeadLetter
from ....hub.deadletter.dead_letters import BulkResult
from ....hub.deadletter.filter import DeadLetterFilter
from ...definitions.values import table_to_json
from ...documents import deliveries, requests
from ...problems import Problem
from ...requests.payload import payload
from ...requests.properties import parse_query
from ...responses.times import rfc3339
from ...subscriptions.document import resource
from ...subscriptions.filter import PAGE_SIZE, PAGING, ListingPage, read_page
from .call import Call, answer
from .filters import Filters
from .required_tags import ADMINISTRATOR, MANAGEMENT
from .route import GONE, Operation, Routes

_TEXTS = ("subscription", "callback", "exchange", "queue", "routing_key", "webhook_id", "reason")
_FILTERS = (*_TEXTS, "vhost", "min_age_s", "max_age_s")
QUERY = (*_FILTERS, *PAGING)
REASONS = 6
"""The most frequent ones that a list counts."""


async def list_letters(call: Call) -> Response:
    """Lists dead letters, oldest first, with filters."""
    query = parse_query(call.request.scope["query_string"])
    page = read_page(query) or ListingPage(1, PAGE_SIZE)
    filters = Filters(query, QUERY)
    first = (page.number - 1) * page.size
    dead_letters = call.context.hub.dead_letters
    found = await dead_letters.page(
        _vhosts(call, filters), _condition(call, filters), first, page.size
    )
    return answer(
        {
            "dead_letters": [described(letter) for letter in found.dead_letters],
            "page": page.number,
            "page_size": page.size,
            "page_count": -(-found.matching // page.size),
            "filtered_count": found.matching,
            "total_count": found.visible,
            "is_complete": found.is_complete,
            "reasons": [
                {"reason": reason, "dead_letters": count}
                for reason, count in found.causes.most_common(REASONS)
            ],
            "oldest_at": rfc3339(found.oldest_at or 0.0),
        }
    )


async def get(call: Call) -> Response:
    """Returns one dead letter with its body."""
    vhost, letter_id = call.names
    letter = await call.context.hub.dead_letters.get(vhost, letter_id, _owner(call))
    return answer({**described(letter), **payload(letter.message.body)})


async def replay(call: Call) -> Response:
    """Returns a dead letter to its subscription, to be delivered as if it had never failed."""
    vhost, letter_id = call.names
    await call.context.hub.dead_letters.replay_one(vhost, letter_id, _owner(call))
    return await call.done()


async def delete(call: Call) -> Response:
    """Deletes one dead letter."""
    vhost, letter_id = call.names
    await call.context.hub.dead_letters.drop_one(vhost, letter_id, _owner(call))
    return await call.done()


async def replay_all(call: Call) -> Response:
    """Returns all dead letters that match the filters of the body to their subscriptions."""
    filters = Filters((await call.body()).everything(), (*_FILTERS, "ids"))
    done = await call.context.hub.dead_letters.replay(
        _vhosts(call, filters), _condition(call, filters)
    )
    await call.stored()
    return answer(_counts(done, "replayed"))


async def delete_all(call: Call) -> Response:
    """Deletes all dead letters that match the filters of the body; without filters `"all": true`
    is required."""
    body = (await call.body()).everything()
    filters = Filters({key: body[key] for key in body if key != "all"}, (*_FILTERS, "ids"))
    if not filters and body.get("all") is not True:
        raise Problem(400, 'give a filter, or "all": true to delete all dead letters')
    done = await call.context.hub.dead_letters.drop(
        _vhosts(call, filters), _condition(call, filters)
    )
    await call.stored()
    return answer(_counts(done, "deleted"))


def described(letter: DeadLetter) -> dict[str, Any]:
    subscription = None if letter.active is None else letter.active.subscription
    headers = letter.message.properties.headers or {}
    own = {name: value for name, value in headers.items() if name not in OWN_HEADERS}
    source = None if subscription is None else resource(subscription.source)
    return {
        "id": letter.id,
        "vhost": letter.vhost,
        "webhook_id": letter.webhook_id,
        "subscription": letter.subscription_id,
        "callback": None if subscription is None else subscription.callback,
        "source": source,
        "exchange": letter.envelope.exchange,
        "routing_key": letter.envelope.routing_key,
        "reason": letter.reason,
        "attempts": letter.envelope.failures,
        "dead_at": rfc3339(letter.dead_at),
        "size": letter.size_bytes,
        "headers": table_to_json(own),
        **_properties(letter.message.properties),
    }


def _properties(properties: Properties) -> Mapping[str, Any]:
    """Returns the content type, and the other properties that are set."""
    names = [one.name for one in fields(Properties) if one.name not in ("headers", "content_type")]
    values = {name: getattr(properties, name) for name in names}
    found = {name: value for name, value in values.items() if value is not None}
    return {"content_type": properties.content_type, "properties": found}


def _counts(done: BulkResult, verb: str) -> dict[str, Any]:
    return {
        verb: done.done,
        **({"skipped": done.skipped} if verb == "replayed" else {}),
        "left": done.left,
        "is_complete": done.is_complete,
    }


def _owner(call: Call) -> str | None:
    """Returns the owner whose dead letters may be shown; None for all."""
    return None if ADMINISTRATOR.has(call.user) else call.user.name


def _vhosts(call: Call, filters: Filters) -> list[str]:
    vhost = filters.text("vhost")
    return sorted(call.broker.vhosts) if vhost is None else [call.vhost(vhost).name]


def _condition(call: Call, filters: Filters) -> DeadLetterFilter:
    now = time.time()
    min_age_s, max_age_s = filters.seconds("min_age_s"), filters.seconds("max_age_s")
    return DeadLetterFilter(
        owner=_owner(call),
        ids=filters.names("ids"),
        dead_before=None if min_age_s is None else now - min_age_s,
        dead_after=None if max_age_s is None else now - max_age_s,
        **{name: filters.text(name) for name in _TEXTS},
    )


ROUTES: Routes = {
    "/hub/dead-letters": {
        "GET": Operation(list_letters, MANAGEMENT, {200: deliveries.DeadLetters}, query=QUERY)
    },
    "/hub/dead-letters/replay": {
        "POST": Operation(replay_all, MANAGEMENT, {200: deliveries.Replayed}, requests.DeadLetters)
    },
    "/hub/dead-letters/delete": {
        "POST": Operation(
            delete_all, MANAGEMENT, {200: deliveries.Deleted}, requests.DeletedLetters
        )
    },
    "/hub/dead-letters/{vhost}/{id}": {
        "GET": Operation(get, MANAGEMENT, {200: deliveries.WholeDeadLetter}),
        "DELETE": Operation(delete, MANAGEMENT, GONE),
    },
    "/hub/dead-letters/{vhost}/{id}/replay": {"POST": Operation(replay, MANAGEMENT, GONE)},
}
