"""How a subscription is, in one word: the first that holds, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, get_args

from ...hub.delivery.breaker import BreakerState
from ...hub.subscriptions.active import ActiveSubscription
from ...hub.subscriptions.subscription import SubscriptionStatus
from ..responses.time_slice import TimeSlice
from ..responses.times import rfc3339

Condition = Literal[
    "suspended", "blocked", "open", "failing", "unconfirmed", "paused", "idle", "delivering"
]
"""The worst first, the order in which `condition` looks for them."""
_RANKS: Final = {word: rank for rank, word in enumerate(get_args(Condition))}


def condition(active: ActiveSubscription) -> Condition:
    if active.state.missing_source:
        return "suspended"
    is_delivered = active.is_served and not active.subscription.reason
    if is_delivered and active.blocking is not None:
        return "blocked"
    if is_delivered and active.breaker_state is BreakerState.OPEN:
        return "open"
    if is_delivered and active.error_count:
        return "failing"
    if active.subscription.status is SubscriptionStatus.UNVERIFIED:
        return "unconfirmed"
    if not is_delivered:
        return "paused"
    return "delivering" if active.last_success_at else "idle"


def rank(active: ActiveSubscription) -> tuple[int, int]:
    """Returns the sort key by which trouble comes first."""
    return _RANKS[condition(active)], -active.error_count


async def summary(
    active_subscriptions: Sequence[ActiveSubscription],
    passes: Callable[[ActiveSubscription], bool],
) -> dict[str, Any]:
    """Returns how many of those that pass are in which condition, and since when the first of them
    fails."""
    found = Counter[Condition]()
    since: float | None = None
    time_slice = TimeSlice()
    for active in active_subscriptions:
        if passes(active):
            found[condition(active)] += 1
            if active.failure_state is not None and active.error_count:
                since = min(since or active.failure_state.first_error_at,
                            active.failure_state.first_error_at)  # fmt: skip
        await time_slice.yield_if_over()
    return {"conditions": dict(found), "failing_since": rfc3339(since)}
