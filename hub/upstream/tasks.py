"""Starts and stops the tasks of upstreams."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..tasks import Tasks
from . import upstream as steps
from .registry import Step, UpstreamRegistry
from .renewal import Renewals
from .state import UpstreamState
from .upstream import UpstreamStatus

log = logging.getLogger(__name__)


class UpstreamTasks:
    """Runs one task that keeps each upstream, and one for each lease that is left."""

    def __init__(self, registry: UpstreamRegistry, renewals: Renewals, clock: Clock) -> None:
        self._registry = registry
        self._renewals = renewals
        self._clock = clock
        self._tasks = Tasks()
        self.lock = asyncio.Lock()
        """Held while an owner's request is changed: one change at a time."""

    async def stop(self) -> None:
        """Cancels all tasks."""
        await self._tasks.stop()

    def serve(self, state: UpstreamState) -> None:
        """Starts the tasks that its status requires, in place of the running ones."""
        status = state.upstream.status
        if state.keeping is not None:
            state.keeping.cancel()
        if status is UpstreamStatus.ENDING and not state.upstream.leases.all():
            self._tasks.own(self._renewals.finish(state))
        elif status not in (UpstreamStatus.ENDING, UpstreamStatus.DENIED):
            state.keeping = self._tasks.own(self._renewals.keep_subscribed(state))
        self.leave_leases(state)

    async def change(self, state: UpstreamState, step: Step) -> None:
        """Applies a step, and starts the upstream's tasks anew, even if it could not be stored."""
        if state.keeping is not None:
            state.keeping.cancel()
        for task in state.leaving.values():
            task.cancel()
        state.leaving.clear()
        try:
            await self._registry.step(state, step)
        finally:
            self.serve(state)

    def leave_leases(self, state: UpstreamState) -> None:
        """Starts a task for each lease to be left that has none."""
        state.leaving = {token: task for token, task in state.leaving.items() if not task.done()}
        for lease in state.upstream.leases.leaving:
            if lease.token not in state.leaving:
                state.leaving[lease.token] = self._tasks.own(
                    self._renewals.unsubscribe(state, lease)
                )

    def end_soon(self, state: UpstreamState) -> None:
        """Begins to end the upstream, without waiting for it."""
        self._tasks.own(self._end_logged(state))

    async def end(self, state: UpstreamState) -> None:
        """Ends the upstream for its owner; its leases are left later."""
        await self.change(state, partial(steps.ending, now_s=self._clock.wall_s()))

    async def _end_logged(self, state: UpstreamState) -> None:
        try:
            async with self.lock:
                await self.end(state)
        except WarrenError as error:
            log.error("upstream '%s' can't be ended: %s", state.upstream.name, error)
