"""What came and can't be taken in now: it goes back to its queue, and comes again later.

Messages wait in their queues, and not in the memory of this process, however many a subscription
may have under way.
"""

from __future__ import annotations

from ..engine.port import Delivery
from ..subscriptions.live import Live
from ..tasks import Tasks
from .holds import Holds
from .order import AWAY_S

MAX_WAITING = 10_000
"""Messages in line for their pace or a slot, above which nobody gets more than one at a time."""


class Surplus:
    """Turns messages away; those of one subscription all at once, for it would get them back."""

    def __init__(self, holds: Holds) -> None:
        self._holds = holds
        self._turned: dict[Live, list[Delivery]] = {}
        self._tasks = Tasks()

    def __contains__(self, live: Live) -> bool:
        return live in self._turned

    def is_beyond(self, waiting: int) -> bool:
        """Whether so many that wait are all that there is room for."""
        return waiting >= MAX_WAITING

    def turn_away(self, live: Live, delivery: Delivery) -> None:
        """One that may have several under way gets one at a time from then on, until one succeeds;
        any other is asked again in a moment."""
        if live not in self._turned:
            self._turned[live] = []
            self._tasks.own(self._consume_later(live))
        self._turned[live].append(delivery)

    def take_all(self) -> list[Delivery]:
        """What has not gone back yet."""
        taken = [delivery for one in self._turned.values() for delivery in one]
        self._turned.clear()
        return taken

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _consume_later(self, live: Live) -> None:
        is_held = not live.takes()  # then somebody else ends that
        if not is_held:
            live.is_single = not live.subscription.options.strict_order
            await self._holds.begin(live)
        for delivery in self._turned.pop(live, ()):
            delivery.nack(requeue=True)
        if not is_held:
            self._holds.end_in(live, 0.0 if live.is_single else AWAY_S)
