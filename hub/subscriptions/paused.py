"""Counts the paused subscriptions to topics of other sites."""

from __future__ import annotations

from collections import Counter

from ..topics.names import CONTENT, ENTRIES
from .subscription import Subscription, SubscriptionStatus


class PausedCounts:
    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, subscription: Subscription) -> None:
        """Counts the subscription if it is paused and to a topic of another site."""
        if _counts(subscription):
            self._counts[subscription.topic] += 1

    def remove(self, subscription: Subscription) -> None:
        """Removes a subscription with the status that it was added with."""
        if _counts(subscription):
            self._counts[subscription.topic] -= 1
            if not self._counts[subscription.topic]:
                del self._counts[subscription.topic]

    def of(self, key: str) -> int:
        return self._counts[key]


def _counts(subscription: Subscription) -> bool:
    is_paused = subscription.status is SubscriptionStatus.PAUSED
    return is_paused and subscription.source.name in (CONTENT, ENTRIES)
