"""Suspends subscriptions until a given time: their messages wait in their queues, where other
consumers can get them, and not in the memory of this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ..subscriptions.active import ActiveSubscription
from ..tasks import Tasks

Step = Callable[[ActiveSubscription], Awaitable[None]]

log = logging.getLogger(__name__)


class Suspensions:
    """Suspends and resumes the consuming of subscriptions: `suspend` cancels a consumer, `resume`
    starts one if the subscription is still active.

    A suspension lasts from `begin` to the end that was set last.
    """

    def __init__(self, suspend: Step, resume: Step) -> None:
        self._suspend = suspend
        self._resume = resume
        self._timers: dict[ActiveSubscription, asyncio.TimerHandle | None] = {}
        """The end of each suspension, None until it is set."""
        self._tasks = Tasks()
        self._is_stopped = False

    async def begin(self, active: ActiveSubscription) -> None:
        """Delivers nothing from now on: what is requeued stays in its queue."""
        self._cancel(active)
        self._timers[active] = None
        await self._suspend(active)

    def end_in(self, active: ActiveSubscription, wait_s: float) -> None:
        """Sets the end of a suspension, in place of an earlier one."""
        self._cancel(active)
        if not self._is_stopped:
            loop = asyncio.get_running_loop()
            self._timers[active] = loop.call_later(wait_s, self._end, active)

    def end_open(self, active: ActiveSubscription) -> None:
        """Ends a suspension whose end is not set, as after an error."""
        if active in self._timers and self._timers[active] is None:
            self.end_in(active, 0.0)

    def end_now(self, active: ActiveSubscription) -> None:
        """Ends a suspension, if there is one, and consumes with the prefetch that is right now."""
        self._cancel(active)
        if not self._is_stopped:
            self._tasks.own(self._consume_anew(active))

    async def stop(self) -> None:
        """Leaves suspensions in force, and starts no consumer any more."""
        self._is_stopped = True
        for active in list(self._timers):
            self._cancel(active)
        await self._tasks.stop()

    def _end(self, active: ActiveSubscription) -> None:
        del self._timers[active]
        if active.failure_state is not None:
            active.failure_state.breaker.cooled_down()
        self._tasks.own(self._resume_unless_suspended(active))

    async def _resume_unless_suspended(self, active: ActiveSubscription) -> None:
        if active not in self._timers:
            await self._resume(active)

    async def _consume_anew(self, active: ActiveSubscription) -> None:
        if active not in self._timers:
            await self._suspend(active)
        await self._resume_unless_suspended(active)

    def _cancel(self, active: ActiveSubscription) -> None:
        timer = self._timers.pop(active, None)
        if timer is not None:
            timer.cancel()
