"""Requeues messages that arrive while too many wait; they are delivered again later.

So messages wait in their queues, and not in the memory of this process, however many a
subscription may have in flight.
"""

from __future__ import annotations

from ..engine.port import Delivery
from ..subscriptions.active import ActiveSubscription
from ..tasks import Tasks
from .order import AWAY_S
from .suspensions import Suspensions

MAX_WAITING = 10_000
"""Messages that wait for a rate limit or a slot; above it each subscription gets one at a time."""


class Overload:
    """Requeues the messages of one subscription together: a single one would be redelivered at
    once."""

    def __init__(self, suspensions: Suspensions) -> None:
        self._suspensions = suspensions
        self._returning: dict[ActiveSubscription, list[Delivery]] = {}
        self._tasks = Tasks()

    def __contains__(self, active: ActiveSubscription) -> bool:
        return active in self._returning

    def is_over_limit(self, waiting: int) -> bool:
        """Whether so many waiting messages are too many."""
        return waiting >= MAX_WAITING

    def requeue(self, active: ActiveSubscription, delivery: Delivery) -> None:
        """Requeues the message. A subscription that may have several in flight gets one at a time
        from then on, until one succeeds; any other is consumed again in a moment."""
        if active not in self._returning:
            self._returning[active] = []
            self._tasks.own(self._suspend(active))
        self._returning[active].append(delivery)

    def take_all(self) -> list[Delivery]:
        """Removes and returns the messages that are not requeued yet."""
        taken = [delivery for one in self._returning.values() for delivery in one]
        self._returning.clear()
        return taken

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _suspend(self, active: ActiveSubscription) -> None:
        is_strict = active.subscription.options.strict_order
        is_suspended_here = active.state.takes()
        if is_suspended_here:
            if not is_strict:
                active.limit_to_one()
            await self._suspensions.begin(active)
        for delivery in self._returning.pop(active, ()):
            delivery.nack(requeue=True)
        if is_suspended_here:
            self._suspensions.end_in(active, AWAY_S if is_strict else 0.0)
