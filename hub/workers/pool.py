"""A few worker processes, started when needed and reused."""

from __future__ import annotations

import asyncio

from ..keyed_locks import KeyedLocks
from ..processes.starter import ProcessStarter
from .errors import WorkFailed, WorkRefused
from .limits import WorkerLimits
from .process import WorkerProcess

__all__ = ["WorkFailed", "WorkRefused", "WorkerLimits", "Workers"]


class Workers:
    """Runs functions in worker processes; callers use `run` alone."""

    def __init__(self, starter: ProcessStarter, limits: WorkerLimits | None = None) -> None:
        self._starter = starter
        self._limits = limits or WorkerLimits()
        self._free = asyncio.Semaphore(self._limits.processes)
        self._origins: KeyedLocks[str] = KeyedLocks()
        self._idle: list[WorkerProcess] = []
        self._all: set[WorkerProcess] = set()

    @property
    def pids(self) -> list[int]:
        """The ids of all running processes."""
        return [worker.pid for worker in self._all]

    async def run(self, function: str, payload: bytes, *, origin: str) -> bytes:
        """Returns the result of the function with this name (`functions.py`) for the payload.

        Calls for the same origin, such as a host, run one at a time, so that none occupies more
        than one process. Raises `WorkFailed` and `WorkRefused`.
        """
        own = self._origins.of(origin)
        async with own, self._free:
            worker = await self._take()
            try:
                return await worker.run(function, payload)
            except WorkRefused:
                raise
            except BaseException:
                await self._end(worker)  # its state is unknown
                raise
            finally:
                await self._give_back(worker)

    async def stop(self) -> None:
        """Ends all processes; current calls fail."""
        await asyncio.gather(*(self._end(worker) for worker in list(self._all)))

    async def _take(self) -> WorkerProcess:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_usable:
                return worker
            await self._end(worker)  # it was killed
        worker = await WorkerProcess.start(self._starter, self._limits)
        self._all.add(worker)
        return worker

    async def _give_back(self, worker: WorkerProcess) -> None:
        if worker in self._all and worker.is_usable:
            self._idle.append(worker)
        else:
            await self._end(worker)

    async def _end(self, worker: WorkerProcess) -> None:
        self._all.discard(worker)
        await worker.end()
