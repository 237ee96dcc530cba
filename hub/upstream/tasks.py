"""Which tasks run for an upstream: begun, stopped, and begun anew after a change."""

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
from .upstream import Status

log = logging.getLogger(__name__)


class UpstreamTasks:
    def __init__(self, registry: UpstreamRegistry, renewals: Renewals, clock: Clock) -> None:
        self._registry = registry
        self._renewals = renewals
        self._clock = clock
        self._tasks = Tasks()
        self.turn = asyncio.Lock()
        """Held by who changes what an owner asked for: one such change after the other."""

    async def stop(self) -> None:
        await self._tasks.stop()

    def serve(self, state: UpstreamState) -> None:
        """Does what its status asks for, in place of what was under way."""
        status = state.upstream.status
        if state.keeping is not None:
            state.keeping.cancel()
        if status is Status.ENDING and not state.upstream.leases.all():
            self._tasks.own(self._renewals.finish(state))
        elif status not in (Status.ENDING, Status.DENIED):
            state.keeping = self._tasks.own(self._renewals.keep(state))
        self.leave_leases(state)

    async def change(self, state: UpstreamState, step: Step) -> None:
        """Stops what is under way for it, and begins anew, also where the step is not stored."""
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
        """A task for each line that is to be left, of which there may be some already."""
        state.leaving = {token: task for token, task in state.leaving.items() if not task.done()}
        for lease in state.upstream.leases.leaving:
            if lease.token not in state.leaving:
                state.leaving[lease.token] = self._tasks.own(self._renewals.leave(state, lease))

    def end_soon(self, state: UpstreamState) -> None:
        """For whoever does not wait for it."""
        self._tasks.own(self._end_logged(state))

    async def end(self, state: UpstreamState) -> None:
        """Over for its owner when it returns."""
        await self.change(state, partial(steps.ending, now_s=self._clock.wall_s()))

    async def _end_logged(self, state: UpstreamState) -> None:
        try:
            async with self.turn:
                await self.end(state)
        except WarrenError as error:
            log.error("upstream '%s' can't be ended: %s", state.upstream.name, error)
