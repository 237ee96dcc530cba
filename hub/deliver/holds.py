"""Leaves subscriptions alone for a while: their messages wait in their queues, for others who
may share them, and not in the memory of this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ..subscriptions.live import Live
from ..tasks import Tasks

Step = Callable[[Live], Awaitable[None]]

log = logging.getLogger(__name__)


class Holds:
    """`suspend` ends a subscription's consuming, `resume` begins it where it still may.

    A hold lasts from `begin` to the end that was named last. What was about to consume anew when
    it began does not.
    """

    def __init__(self, suspend: Step, resume: Step) -> None:
        self._suspend = suspend
        self._resume = resume
        self._held: dict[Live, asyncio.TimerHandle | None] = {}
        """None while nobody has named its end yet."""
        self._tasks = Tasks()
        self._is_stopped = False

    async def begin(self, live: Live) -> None:
        """From here on it gets nothing; what it is given back stays in its queue."""
        self._cancel(live)
        self._held[live] = None
        await self._suspend(live)

    def end_in(self, live: Live, wait_s: float) -> None:
        self._cancel(live)
        if not self._is_stopped:
            loop = asyncio.get_running_loop()
            self._held[live] = loop.call_later(wait_s, self._end, live)

    def end_begun(self, live: Live) -> None:
        """Ends one whose end nobody is going to name any more, as after an error."""
        if live in self._held and self._held[live] is None:
            self.end_in(live, 0.0)

    def end_now(self, live: Live) -> None:
        """Consumes anew, also where nothing was held: with the prefetch that is right now."""
        self._cancel(live)
        if not self._is_stopped:
            self._tasks.own(self._consume_anew(live))

    async def stop(self) -> None:
        """What is held stays so; nothing is consumed any more."""
        self._is_stopped = True
        for live in list(self._held):
            self._cancel(live)
        await self._tasks.stop()

    def _end(self, live: Live) -> None:
        del self._held[live]
        if live.trouble is not None:
            live.trouble.breaker.cooled_down()
        self._tasks.own(self._go_on(live))

    async def _go_on(self, live: Live) -> None:
        if live not in self._held:
            await self._resume(live)

    async def _consume_anew(self, live: Live) -> None:
        if live not in self._held:
            await self._suspend(live)
        await self._go_on(live)

    def _cancel(self, live: Live) -> None:
        timer = self._held.pop(live, None)
        if timer is not None:
            timer.cancel()
