"""Counts over the subscriptions, feeds and tunnels of an owner."""

from __future__ import annotations

from heapq import heappush, heappushpop
from typing import NamedTuple

from ...hub.delivery.breaker import BreakerState
from ...hub.feeds.feed import Feed
from ...hub.feeds.health import Health, health_of
from ...hub.subscriptions.active import ActiveSubscription
from ...hub.subscriptions.delivery_state import Phase
from .queue_counts import SHOWN


class FailingCallback(NamedTuple):
    """A subscription whose deliveries fail; the greater the worse."""

    failures: int
    id: str
    active: ActiveSubscription


class OwnerCounts:
    """Figures of one owner, a user's name or "" for anonymous clients."""

    def __init__(self) -> None:
        self.subscriptions = 0
        self.failing = 0
        self.paused = 0
        self.open_breakers = 0
        self.feeds = 0
        self.failing_feeds = 0
        self.tunnels = 0
        self.callbacks: list[FailingCallback] = []
        """The worst, as a heap with the least of them first."""

    def add(self, active: ActiveSubscription) -> None:
        self.subscriptions += 1
        if active.state.phase is Phase.PAUSED:
            self.paused += 1
        if not active.error_count:
            return
        self.failing += 1
        if active.breaker_state is not BreakerState.CLOSED:
            self.open_breakers += 1
        found = FailingCallback(active.error_count, active.subscription.id, active)
        if len(self.callbacks) < SHOWN:
            heappush(self.callbacks, found)
        else:
            heappushpop(self.callbacks, found)

    def add_feed(self, feed: Feed, now_s: float) -> None:
        self.feeds += 1
        if health_of(feed, now_s) in (Health.FAILING, Health.DEAD):
            self.failing_feeds += 1
