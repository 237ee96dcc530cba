"""Delivery attempts with their times, requests and responses, and sending messages again.

Administrators see all attempts, other users those of their own subscriptions.
"""

from __future__ import annotations

from dataclasses import replace

from starlette.responses import Response

from ....hub.attempts.attempt import AttemptFilter, StoredAttempt
from ....hub.errors import NoSuchAttempt
from ....hub.resend.resends import ATTEMPTS_MAX
from ...documents import deliveries, requests
from ...problems import Problem
from ...requests.properties import parse_query
from . import attempt_json
from .attempt_filter import FILTERS, NO_ANSWER, condition, is_attempt_id, owns
from .call import Call, answer
from .filters import Filters
from .required_tags import ADMINISTRATOR, MANAGEMENT
from .route import Operation, Routes

LIMIT, MAX_LIMIT = 100, 1000
QUERY = (*FILTERS, "before", "limit")


async def list_attempts(call: Call) -> Response:
    """Lists delivery attempts, newest first. `status` is a number, a class such as `5xx`, or
    `none`; `callback` is a part of the URL. `callback`, `source`, `topic` and `vhost` find
    subscriptions that are in force."""
    filters = _filters(call)
    return await _listed(call, filters, filters.text("subscription"))


async def list_of_subscription(call: Call) -> Response:
    """Lists delivery attempts of a subscription, newest first."""
    return await _listed(call, _filters(call), call.names[0])


async def count(call: Call) -> Response:
    """Counts the newest attempts that match, 10,000 at most, by outcome and class of status
    (`none` without an answer). `is_complete` is false if there are more."""
    filters = Filters(parse_query(call.request.scope["query_string"]), FILTERS)
    wanted = condition(call, filters, filters.text("subscription"), None, ATTEMPTS_MAX)
    found = await call.context.hub.attempts.count(wanted)
    counts = [
        {
            "outcome": one.outcome.value,
            "status": NO_ANSWER if one.status_class is None else f"{one.status_class}xx",
            "attempts": one.attempts,
        }
        for one in found
    ]
    total = sum(one.attempts for one in found)
    return answer({"counts": counts, "total": total, "is_complete": total < ATTEMPTS_MAX})


async def get(call: Call) -> Response:
    """Returns one attempt with its request (null with the reason in `request_missing`), all
    attempts of the message, and when it is tried again."""
    stored = await _stored(call)
    hub = call.context.hub
    tries = await hub.resends.of_message(stored.attempt)
    active = hub.subscription_store.by_id(stored.attempt.subscription_id)
    return answer(attempt_json.whole(stored, tries, active))


async def resend(call: Call) -> Response:
    """Sends the message of an attempt again: a dead letter is replayed, one that waits for a retry
    is tried now, any other is posted from its kept request."""
    stored = await _stored(call)
    done = await call.context.hub.resends.one(stored)
    await call.stored()
    shown = None if done.attempt is None else attempt_json.tried(done.attempt)
    return answer({"way": done.way.value, "attempt": shown})


async def resend_all(call: Call) -> Response:
    """Sends the messages of all attempts again that match the filters of the body; with
    `"dry_run": true` only counts them. `matching` and `resendable` count messages. Without filters
    `"all": true` is required to send."""
    body = await call.body()
    is_trial, means_all = body.flag("dry_run"), body.flag("all")
    given = {key: value for key, value in body.everything().items() if key not in _SWITCHES}
    filters = Filters(given, (*FILTERS, "ids"))
    if not (filters or is_trial or means_all):
        raise Problem(400, 'give a filter, or "all": true to send all messages again')
    wanted = condition(call, filters, filters.text("subscription"), None, MAX_LIMIT)
    hub = call.context.hub
    plan = await hub.resends.plan(await _all(call, wanted))
    counts = {"matching": plan.matching, "resendable": plan.resendable}
    if is_trial:
        return answer({**counts, "resent": 0})
    resent = await hub.resends.carry_out(plan)
    await call.stored()
    return answer({**counts, "resent": resent})


async def _all(call: Call, wanted: AttemptFilter) -> list[StoredAttempt]:
    """Returns all attempts that match, read page by page. Raises `Problem` 400 for too many."""
    found: list[StoredAttempt] = []
    while page := await call.context.hub.attempts.find(wanted):
        found += page
        if len(found) > ATTEMPTS_MAX:
            raise Problem(400, f"more than {ATTEMPTS_MAX} attempts match: narrow since or until")
        wanted = replace(wanted, before=page[-1].id)
    call.still_permitted()
    return found


_SWITCHES = ("dry_run", "all")


async def _stored(call: Call) -> StoredAttempt:
    """Returns the attempt in the path; raises `NoSuchAttempt`, for another user's attempt too."""
    name = call.names[0]
    found = await call.context.hub.attempts.get(int(name)) if is_attempt_id(name) else None
    call.still_permitted()
    if found is None or not (
        ADMINISTRATOR.has(call.user) or owns(call, found.attempt.subscription_id)
    ):
        raise NoSuchAttempt(f"no attempt '{name[:80]}'", field="id", value=name)
    return found


def _filters(call: Call) -> Filters:
    return Filters(parse_query(call.request.scope["query_string"]), QUERY)


async def _listed(call: Call, filters: Filters, subscription_id: str | None) -> Response:
    """Lists attempts; `next_before` is the `before` of the next page, null at the end."""
    limit = filters.number("limit", 1, MAX_LIMIT) or LIMIT
    before = filters.number("before", 0, 2**63 - 1)
    wanted = condition(call, filters, subscription_id, before, limit)
    found = await call.context.hub.attempts.find(wanted)
    last = found[-1].id if len(found) == limit else None
    by_id = call.context.hub.subscription_store.by_id
    attempts = [attempt_json.listed(one, by_id(one.attempt.subscription_id)) for one in found]
    return answer({"attempts": attempts, "next_before": last})


ROUTES: Routes = {
    "/hub/attempts": {
        "GET": Operation(list_attempts, MANAGEMENT, {200: deliveries.Attempts}, query=QUERY)
    },
    "/hub/attempts/counts": {
        "GET": Operation(count, MANAGEMENT, {200: deliveries.AttemptCounts}, query=FILTERS)
    },
    "/hub/attempts/resend": {
        "POST": Operation(resend_all, MANAGEMENT, {200: deliveries.ResentAll}, requests.Resend)
    },
    "/hub/attempts/{id}": {"GET": Operation(get, MANAGEMENT, {200: deliveries.WholeAttempt})},
    "/hub/attempts/{id}/resend": {"POST": Operation(resend, MANAGEMENT, {200: deliveries.Resent})},
    "/hub/subscriptions/{id}/attempts": {
        "GET": Operation(list_of_subscription, MANAGEMENT, {200: deliveries.Attempts}, query=QUERY)
    },
}
