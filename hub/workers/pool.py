"""A few worker processes, started when there is work and kept for more."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from .limits import Limits
from .process import WorkerProcess, WorkFailed, WorkRefused

__all__ = ["Limits", "WorkFailed", "WorkRefused", "Workers"]


class Workers:
    """`run` is the port: bytes in, bytes out, whatever is done with them."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._free = asyncio.Semaphore(self._limits.processes)
        # Each is kept by those who wait for it or hold it.
        self._origins: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._idle: list[WorkerProcess] = []
        self._all: set[WorkerProcess] = set()

    @property
    def pids(self) -> list[int]:
        """The processes that there are."""
        return [worker.pid for worker in self._all]

    async def run(self, function: str, payload: bytes, *, origin: str) -> bytes:
        """What the function of this name (`functions.py`) makes of the payload.

        One piece of work of each origin, a host for instance, is done at a time, so that nobody
        holds more than one process. Raises `WorkFailed` and `WorkRefused`.
        """
        own = self._origins.setdefault(origin, asyncio.Lock())
        async with own, self._free:
            worker = await self._take()
            try:
                return await worker.run(function, payload)
            except WorkRefused:
                raise
            except BaseException:
                await self._end(worker)  # nobody knows what state it is in
                raise
            finally:
                await self._give_back(worker)

    async def stop(self) -> None:
        """Ends all processes; what is under way fails."""
        await asyncio.gather(*(self._end(worker) for worker in list(self._all)))

    async def _take(self) -> WorkerProcess:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_usable:
                return worker
            await self._end(worker)  # somebody has killed it
        worker = await WorkerProcess.start(self._limits)
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
