"""How many paused subscriptions are bound to each topic of others."""

from __future__ import annotations

from collections import Counter

from ..topics.names import CONTENT, ENTRIES
from .subscription import Status, Subscription


class Paused:
    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, subscription: Subscription) -> None:
        """Counts it, if it is paused and has to do with a topic of others."""
        if _counts(subscription):
            self._counts[subscription.topic] += 1

    def remove(self, subscription: Subscription) -> None:
        """As it was when it was added."""
        if _counts(subscription):
            self._counts[subscription.topic] -= 1
            if not self._counts[subscription.topic]:
                del self._counts[subscription.topic]

    def of(self, key: str) -> int:
        return self._counts[key]


def _counts(subscription: Subscription) -> bool:
    is_paused = subscription.status is Status.PAUSED
    return is_paused and subscription.source.name in (CONTENT, ENTRIES)
