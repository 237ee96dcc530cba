"""How a subscription is, in one word: what keeps its messages from arriving comes first."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, get_args

from ...hub.delivery.breaker import BreakerState
from ...hub.subscriptions.active import ActiveSubscription
from ...hub.subscriptions.subscription import SubscriptionStatus
from ..responses.times import rfc3339

Condition = Literal[
    "open", "blocked", "failing", "suspended", "unconfirmed", "paused", "idle", "delivering"
]
"""The worst first."""
_RANKS: Final = {word: rank for rank, word in enumerate(get_args(Condition))}
PORTION: Final = 500
"""Counted at once: some 1 ms."""


def condition(active: ActiveSubscription) -> Condition:
    if active.state.missing_source:
        return "suspended"
    if active.subscription.status is SubscriptionStatus.UNVERIFIED:
        return "unconfirmed"
    if active.subscription.reason or not active.is_served:
        return "paused"
    if active.blocking is not None:
        return "blocked"
    if active.breaker_state is BreakerState.OPEN:
        return "open"
    if active.error_count:
        return "failing"
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
    for start in range(0, len(active_subscriptions), PORTION):
        for active in active_subscriptions[start : start + PORTION]:
            if not passes(active):
                continue
            found[condition(active)] += 1
            if active.failure_state is not None and active.error_count:
                since = min(since or active.failure_state.first_error_at,
                            active.failure_state.first_error_at)  # fmt: skip
        await asyncio.sleep(0)
    return {"conditions": dict(found), "failing_since": rfc3339(since)}
