"""Dead letters: listed, looked at, replayed and deleted.

Administrators see all, others those of the subscriptions that they own.
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
from ...payload import payload
from ...problems import Problem
from ...properties import parse_query
from ...subscription_filter import PAGE_SIZE, PAGING, Page, read_page
from ...subscription_json import resource
from ...times import rfc3339
from .call import Call, answer
from .filters import Filters
from .required_tags import ADMINISTRATOR, MANAGEMENT
from .route import Routes

_TEXTS = ("subscription", "callback", "exchange", "queue", "routing_key", "webhook_id", "reason")
_FILTERS = (*_TEXTS, "vhost", "min_age_s", "max_age_s")
QUERY = (*_FILTERS, *PAGING)


async def list_letters(call: Call) -> Response:
    """Lists dead letters, the oldest first, as the query filters them."""
    query = parse_query(call.request.scope["query_string"])
    page = read_page(query) or Page(1, PAGE_SIZE)
    given = Filters(query, QUERY)
    first = (page.number - 1) * page.size
    letters = call.context.hub.dead_letters
    found = await letters.page(_vhosts(call, given), _wanted(call, given), first, page.size)
    return answer(
        {
            "dead_letters": [described(letter) for letter in found.dead_letters],
            "page": page.number,
            "page_size": page.size,
            "page_count": -(-found.matching // page.size),
            "filtered_count": found.matching,
            "total_count": found.visible,
            "is_complete": found.is_complete,
        }
    )


async def get(call: Call) -> Response:
    """Tells one dead letter, its body included."""
    vhost, letter_id = call.names
    letter = await call.context.hub.dead_letters.get(vhost, letter_id, _owner(call))
    return answer({**described(letter), **payload(letter.message.body)})


async def replay(call: Call) -> Response:
    """Gives one back to its subscription, to be delivered as if it had never failed."""
    vhost, letter_id = call.names
    await call.context.hub.dead_letters.replay_one(vhost, letter_id, _owner(call))
    return await call.done()


async def delete(call: Call) -> Response:
    """Deletes one dead letter."""
    vhost, letter_id = call.names
    await call.context.hub.dead_letters.drop_one(vhost, letter_id, _owner(call))
    return await call.done()


async def replay_all(call: Call) -> Response:
    """Gives all that the filters of the body let pass back to their subscriptions."""
    given = Filters((await call.body()).everything(), (*_FILTERS, "ids"))
    done = await call.context.hub.dead_letters.replay(_vhosts(call, given), _wanted(call, given))
    await call.kept()
    return answer(_counts(done, "replayed"))


async def delete_all(call: Call) -> Response:
    """Deletes all that the filters of the body let pass; without one, `"all": true` is needed."""
    body = (await call.body()).everything()
    given = Filters({key: body[key] for key in body if key != "all"}, (*_FILTERS, "ids"))
    if not given and body.get("all") is not True:
        raise Problem(400, 'name a filter, or say "all": true to delete all dead letters')
    done = await call.context.hub.dead_letters.drop(_vhosts(call, given), _wanted(call, given))
    await call.kept()
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
    """The type of the content, and what else is set."""
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
    """Whose letters may be shown; None for all."""
    return None if ADMINISTRATOR.has(call.user) else call.user.name


def _vhosts(call: Call, given: Filters) -> list[str]:
    vhost = given.text("vhost")
    return sorted(call.broker.vhosts) if vhost is None else [call.vhost(vhost).name]


def _wanted(call: Call, given: Filters) -> DeadLetterFilter:
    now = time.time()
    youngest, oldest = given.seconds("min_age_s"), given.seconds("max_age_s")
    return DeadLetterFilter(
        owner=_owner(call),
        ids=given.names("ids"),
        dead_before=None if youngest is None else now - youngest,
        dead_after=None if oldest is None else now - oldest,
        **{name: given.text(name) for name in _TEXTS},
    )


ROUTES: Routes = {
    "/hub/dead-letters": {"GET": (list_letters, MANAGEMENT)},
    "/hub/dead-letters/replay": {"POST": (replay_all, MANAGEMENT)},
    "/hub/dead-letters/delete": {"POST": (delete_all, MANAGEMENT)},
    "/hub/dead-letters/{vhost}/{id}": {"GET": (get, MANAGEMENT), "DELETE": (delete, MANAGEMENT)},
    "/hub/dead-letters/{vhost}/{id}/replay": {"POST": (replay, MANAGEMENT)},
}
