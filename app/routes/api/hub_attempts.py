"""Delivery attempts with their times and responses.

Administrators see all attempts, other users those of their own subscriptions.
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
"""Maximum subscriptions of one owner in a single query."""
QUERY = ("subscription", "webhook_id", "outcome", "before", "limit")


async def list_attempts(call: Call) -> Response:
    """Lists delivery attempts, newest first."""
    filters = _filters(call)
    return await _listed(call, filters, filters.text("subscription"))


async def list_of_subscription(call: Call) -> Response:
    """Lists delivery attempts of a subscription, newest first."""
    return await _listed(call, _filters(call), call.names[0])


def described(stored: StoredAttempt) -> dict[str, Any]:
    attempt = stored.attempt
    return {
        "id": stored.id,
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


def _filters(call: Call) -> Filters:
    return Filters(parse_query(call.request.scope["query_string"]), QUERY)


async def _listed(call: Call, filters: Filters, subscription_id: str | None) -> Response:
    """Lists attempts; `next_before` is the `before` of the next page, null at the end."""
    outcome = filters.word("outcome", [*Outcome])
    limit = filters.number("limit", 1, MAX_LIMIT) or LIMIT
    condition = AttemptFilter(
        subscription_ids=_subscriptions(call, subscription_id),
        webhook_id=filters.text("webhook_id"),
        outcome=Outcome(outcome) if outcome else None,
        before=filters.number("before", 0, 2**63 - 1),
        limit=limit,
    )
    found = await call.context.hub.attempts.find(condition)
    before = found[-1].id if len(found) == limit else None
    return answer({"attempts": [described(stored) for stored in found], "next_before": before})


def _subscriptions(call: Call, subscription_id: str | None) -> Collection[str] | None:
    """Returns the ids of the subscriptions whose attempts may be shown.

    None stands for all, including subscriptions that have ended.
    """
    if ADMINISTRATOR.has(call.user):
        return None if subscription_id is None else [subscription_id]
    active_subscriptions = (
        active.subscription for active in call.context.hub.subscriptions.active_subscriptions()
    )
    own = {one.id for one in active_subscriptions if one.owner == call.user.name}
    if subscription_id is not None:
        if subscription_id not in own:
            raise not_found(f"no subscription '{subscription_id}'")
        return [subscription_id]
    if len(own) > MAX_SUBSCRIPTIONS:
        reason = (
            f"you own {len(own)} subscriptions, more than {MAX_SUBSCRIPTIONS}: name one, as in "
            "?subscription=ID"
        )
        raise Problem(400, reason)
    return own


ROUTES: Routes = {
    "/hub/attempts": {"GET": (list_attempts, MANAGEMENT)},
    "/hub/subscriptions/{id}/attempts": {"GET": (list_of_subscription, MANAGEMENT)},
}
