"""Leaves subscriptions alone for a while: their messages wait in their queues, for others who
may share them, and not in the memory of this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ..subscriptions.active import ActiveSubscription
from ..tasks import Tasks

Step = Callable[[ActiveSubscription], Awaitable[None]]

log = logging.getLogger(__name__)


class Suspensions:
    """`suspend` ends a subscription's consuming, `resume` begins it where it still may.

    A hold lasts from `begin` to the end that was named last. What was about to consume anew when
    it began does not.
    """

    def __init__(self, suspend: Step, resume: Step) -> None:
        self._suspend = suspend
        self._resume = resume
        self._timers: dict[ActiveSubscription, asyncio.TimerHandle | None] = {}
        """None while nobody has named its end yet."""
        self._tasks = Tasks()
        self._is_stopped = False

    async def begin(self, active: ActiveSubscription) -> None:
        """From here on it gets nothing; what it is given back stays in its queue."""
        self._cancel(active)
        self._timers[active] = None
        await self._suspend(active)

    def end_in(self, active: ActiveSubscription, wait_s: float) -> None:
        self._cancel(active)
        if not self._is_stopped:
            loop = asyncio.get_running_loop()
            self._timers[active] = loop.call_later(wait_s, self._end, active)

    def end_begun(self, active: ActiveSubscription) -> None:
        """Ends one whose end nobody is going to name any more, as after an error."""
        if active in self._timers and self._timers[active] is None:
            self.end_in(active, 0.0)

    def end_now(self, active: ActiveSubscription) -> None:
        """Consumes anew, also where nothing was held: with the prefetch that is right now."""
        self._cancel(active)
        if not self._is_stopped:
            self._tasks.own(self._consume_anew(active))

    async def stop(self) -> None:
        """What is held stays so; nothing is consumed any more."""
        self._is_stopped = True
        for active in list(self._timers):
            self._cancel(active)
        await self._tasks.stop()

    def _end(self, active: ActiveSubscription) -> None:
        del self._timers[active]
        if active.failure_state is not None:
            active.failure_state.breaker.cooled_down()
        self._tasks.own(self._go_on(active))

    async def _go_on(self, active: ActiveSubscription) -> None:
        if active not in self._timers:
            await self._resume(active)

    async def _consume_anew(self, active: ActiveSubscription) -> None:
        if active not in self._timers:
            await self._suspend(active)
        await self._go_on(active)

    def _cancel(self, active: ActiveSubscription) -> None:
        timer = self._timers.pop(active, None)
        if timer is not None:
            timer.cancel()
