"""Requeues messages that come while too many wait; they are consumed again later.

Messages wait in their queues, and not in the memory of this process, however many a subscription
may have under way.
"""

from __future__ import annotations

from ..engine.port import Delivery
from ..subscriptions.active import ActiveSubscription
from ..tasks import Tasks
from .order import AWAY_S
from .suspensions import Suspensions

MAX_WAITING = 10_000
"""Messages waiting for a rate limit or a slot, above which each subscription gets one at a time."""


class Overload:
    """Turns messages away; those of one subscription all at once, for it would get them back."""

    def __init__(self, suspensions: Suspensions) -> None:
        self._suspensions = suspensions
        self._turned: dict[ActiveSubscription, list[Delivery]] = {}
        self._tasks = Tasks()

    def __contains__(self, active: ActiveSubscription) -> bool:
        return active in self._turned

    def is_beyond(self, waiting: int) -> bool:
        """Whether so many that wait are all that there is room for."""
        return waiting >= MAX_WAITING

    def turn_away(self, active: ActiveSubscription, delivery: Delivery) -> None:
        """One that may have several under way gets one at a time from then on, until one succeeds;
        any other is asked again in a moment."""
        if active not in self._turned:
            self._turned[active] = []
            self._tasks.own(self._consume_later(active))
        self._turned[active].append(delivery)

    def take_all(self) -> list[Delivery]:
        """What has not gone back yet."""
        taken = [delivery for one in self._turned.values() for delivery in one]
        self._turned.clear()
        return taken

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _consume_later(self, active: ActiveSubscription) -> None:
        is_held = not active.takes()  # then somebody else ends that
        if not is_held:
            active.is_single = not active.subscription.options.strict_order
            await self._suspensions.begin(active)
        for delivery in self._turned.pop(active, ()):
            delivery.nack(requeue=True)
        if not is_held:
            self._suspensions.end_in(active, 0.0 if active.is_single else AWAY_S)
