"""Which tasks run for an upstream: begun, stopped, and begun anew after a change."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..tasks import Tasks
from . import upstream as steps
from .held import Held
from .keeper import Keeper
from .register import Register, Step
from .upstream import Status

log = logging.getLogger(__name__)


class Work:
    def __init__(self, register: Register, keeper: Keeper, clock: Clock) -> None:
        self._register = register
        self._keeper = keeper
        self._clock = clock
        self._tasks = Tasks()
        self.turn = asyncio.Lock()
        """Held by who changes what an owner asked for: one such change after the other."""

    async def stop(self) -> None:
        await self._tasks.stop()

    def serve(self, held: Held) -> None:
        """Does what its status asks for, in place of what was under way."""
        status = held.upstream.status
        if held.keeping is not None:
            held.keeping.cancel()
        if status is Status.ENDING and not held.upstream.lines.all():
            self._tasks.own(self._keeper.finish(held))
        elif status not in (Status.ENDING, Status.DENIED):
            held.keeping = self._tasks.own(self._keeper.keep(held))
        self.leave_lines(held)

    async def change(self, held: Held, step: Step) -> None:
        """Stops what is under way for it, and begins anew, also where the step is not stored."""
        if held.keeping is not None:
            held.keeping.cancel()
        for task in held.leaving.values():
            task.cancel()
        held.leaving.clear()
        try:
            await self._register.step(held, step)
        finally:
            self.serve(held)

    def leave_lines(self, held: Held) -> None:
        """A task for each line that is to be left, of which there may be some already."""
        held.leaving = {token: task for token, task in held.leaving.items() if not task.done()}
        for line in held.upstream.lines.leaving:
            if line.token not in held.leaving:
                held.leaving[line.token] = self._tasks.own(self._keeper.leave(held, line))

    def end_soon(self, held: Held) -> None:
        """For whoever does not wait for it."""
        self._tasks.own(self._end_logged(held))

    async def end(self, held: Held) -> None:
        """Over for its owner when it returns."""
        await self.change(held, partial(steps.ending, now_s=self._clock.wall_s()))

    async def _end_logged(self, held: Held) -> None:
        try:
            async with self.turn:
                await self.end(held)
        except WarrenError as error:
            log.error("upstream '%s' can't be ended: %s", held.upstream.name, error)
