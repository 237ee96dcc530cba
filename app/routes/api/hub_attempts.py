"""Attempts to deliver: when what was posted, and what came back.

Administrators see all, others those of the subscriptions that they own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from starlette.responses import Response

from ....core.errors import not_found
from ....hub.attempts.attempt import AttemptFilter, Outcome, StoredAttempt
from ...problems import Problem
from ...properties import parse_query
from ...times import rfc3339
from .call import Call, answer
from .filters import Filters
from .required_tags import ADMINISTRATOR, MANAGEMENT
from .route import Routes

LIMIT, MAX_LIMIT = 100, 1000
MAX_SUBSCRIPTIONS = 1000
"""Of one owner, that are looked through at once."""
QUERY = ("subscription", "webhook_id", "outcome", "before", "limit")


async def list_attempts(call: Call) -> Response:
    """Lists attempts to deliver, the newest first."""
    given = _given(call)
    return await _listed(call, given, given.text("subscription"))


async def list_of_subscription(call: Call) -> Response:
    """Lists attempts to deliver to a subscription, the newest first."""
    return await _listed(call, _given(call), call.names[0])


def described(kept: StoredAttempt) -> dict[str, Any]:
    attempt = kept.attempt
    return {
        "id": kept.id,
        "subscription": attempt.subscription_id,
        "webhook_id": attempt.webhook_id,
        "number": attempt.number,
        "at": rfc3339(attempt.at),
        "latency_ms": attempt.latency_ms,
        "status": attempt.status,
        "outcome": attempt.outcome.value,
        "response": attempt.response,
        "callback": attempt.callback,
        "response_body": attempt.body,
    }


def _given(call: Call) -> Filters:
    return Filters(parse_query(call.request.scope["query_string"]), QUERY)


async def _listed(call: Call, given: Filters, subscription_id: str | None) -> Response:
    """`next_before` is the `before` of the next page, null at the end."""
    outcome = given.word("outcome", [*Outcome])
    limit = given.number("limit", 1, MAX_LIMIT) or LIMIT
    wanted = AttemptFilter(
        subscription_ids=_subscriptions(call, subscription_id),
        webhook_id=given.text("webhook_id"),
        outcome=Outcome(outcome) if outcome else None,
        before=given.number("before", 0, 2**63 - 1),
        limit=limit,
    )
    found = await call.context.hub.attempts.find(wanted)
    before = found[-1].id if len(found) == limit else None
    return answer({"attempts": [described(kept) for kept in found], "next_before": before})


def _subscriptions(call: Call, wanted: str | None) -> Collection[str] | None:
    """Those whose attempts may be shown; None for all, also those that are over."""
    if ADMINISTRATOR.has(call.user):
        return None if wanted is None else [wanted]
    active_subscriptions = (
        active.subscription for active in call.context.hub.subscriptions.active_subscriptions()
    )
    own = {one.id for one in active_subscriptions if one.owner == call.user.name}
    if wanted is not None:
        if wanted not in own:
            raise not_found(f"no subscription '{wanted}'")
        return [wanted]
    if len(own) > MAX_SUBSCRIPTIONS:
        reason = f"you own {len(own)} subscriptions: name one, as ?subscription=ID"
        raise Problem(400, reason)
    return own


ROUTES: Routes = {
    "/hub/attempts": {"GET": (list_attempts, MANAGEMENT)},
    "/hub/subscriptions/{id}/attempts": {"GET": (list_of_subscription, MANAGEMENT)},
}
