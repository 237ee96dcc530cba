"""Monitors memory and disk: computes the limits, measures each second, updates the alarms.

The bytes of messages are checked in every turn (`Broker.turn`), because they can grow by hundreds
of megabytes within a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ..resources.alarms import Bounds, Reading
from ..resources.amount import GIB, Amount, in_words
from ..resources.footprint import connection_bytes, shared_bytes
from . import machine
from .listener import Listener
from .tuning import collect_old

logger = logging.getLogger(__name__)

PERIOD_S: Final = 1.0
ASSUMED_BYTES: Final = GIB
DISK_FREE_BYTES: Final = GIB
DISK_FREE_SHARE: Final = 0.05
RSS_SHARE: Final = 0.85
"""Of the memory that the process may use; never below the limit that was set."""
TRIM_PERIODS: Final = 30
"""Measurements between two attempts to return memory to the system."""
_SLICE: Final = 500
"""Connections that are counted before the event loop goes on."""


class Resources:
    """The monitor; `disk_free` None means the lesser of 1 GiB and 5 %.

    The functions that measure are attributes, which tests replace.
    """

    def __init__(
        self,
        listener: Listener,
        directory: Path,
        *,
        memory: Amount,
        disk_free: Amount | None,
    ) -> None:
        self._listener = listener
        self._broker = listener.broker
        self._directory = directory
        self._memory = memory
        self._disk_free = disk_free
        self._periods_until_trim = 0
        self._task: asyncio.Task[None] | None = None
        self.lines: list[str] = []
        """The limits in words, for the server's start message."""
        self.available: Callable[[], machine.Memory | None] = machine.memory
        self.rss: Callable[[], int | None] = machine.rss_bytes
        self.disk: Callable[[Path], machine.DiskSpace | None] = machine.disk
        self.trim: Callable[[], None] = machine.trim

    async def start(self) -> None:
        """Measures now, then each second until `stop`."""
        self.set_limits()
        await self.measure()
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # -- bounds

    def set_limits(self) -> None:
        """Computes the limits, and describes them in `lines`."""
        limit, rss = self._memory_limits()
        self._broker.alarms.bounds = Bounds(limit, rss, self._disk_limit())

    def _memory_limits(self) -> tuple[int, int]:
        if self._memory.of(GIB) == 0:
            self.lines.append("memory limit: none (memory_limit is 0)")
            return 0, 0
        found = self.available()
        if found is None:
            logger.warning(
                "the size of the memory can't be determined: %s is assumed; set memory_limit for "
                "another limit",
                in_words(ASSUMED_BYTES),
            )
            found = machine.Memory(ASSUMED_BYTES, "assumed")
        limit = max(1, self._memory.of(found.size_bytes))
        how = f"{self._memory.share:g} of " if self._memory.share else "set, of "
        self.lines.append(
            f"memory limit: {in_words(limit)} ({how}{in_words(found.size_bytes)}, {found.source})"
        )
        return limit, max(limit, int(RSS_SHARE * found.size_bytes))

    def _disk_limit(self) -> int:
        amount = self._disk_free
        if amount is not None and amount.of(GIB) == 0:
            self.lines.append("disk free limit: none (disk_free_limit is 0)")
            return 0
        found = self.disk(self._directory)
        if found is None:
            logger.warning(
                "the free space of %s can't be determined: there is no limit", self._directory
            )
            return 0
        least = min(DISK_FREE_BYTES, int(DISK_FREE_SHARE * found.size_bytes))
        limit = least if amount is None else amount.of(found.size_bytes)
        self.lines.append(
            f"disk free limit: {in_words(limit)} ({in_words(found.free_bytes)} of "
            f"{in_words(found.size_bytes)} are free)"
        )
        return limit

    # -- measuring

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            collect_old()
            try:
                await self.measure()
            except Exception:
                logger.exception("internal error while memory and disk were measured")

    async def measure(self) -> None:
        """Measures once; a turn then sends blocked and unblocked to clients."""
        other_bytes = await self._count()
        rss = await self._rss_after_trim()
        found = self.disk(self._directory)
        broker = self._broker
        broker.tick()
        broker.clock_steps.check()
        broker.alarms.measure(
            Reading(
                other_bytes + shared_bytes(broker),
                rss,
                None if found is None else found.free_bytes,
                broker.store.progress.refused > broker.store.progress.committed,
            )
        )
        self._listener.turn()

    async def _count(self) -> int:
        """Adds up the memory of all connections, some at a time: there may be thousands."""
        peers = list(self._listener.peers)
        size = 0
        for first in range(0, len(peers), _SLICE):
            for peer in peers[first : first + _SLICE]:
                size += connection_bytes(peer.connection) + peer.buffered_bytes
            await asyncio.sleep(0)
        return size

    async def _rss_after_trim(self) -> int | None:
        """Returns the RSS; if it is above the limit, after returning free memory to the system."""
        rss, bound = self.rss(), self._broker.alarms.bounds.rss
        self._periods_until_trim = max(0, self._periods_until_trim - 1)
        if rss is None or not bound or rss <= bound or self._periods_until_trim:
            return rss
        self._periods_until_trim = TRIM_PERIODS
        while self._broker.store.cache.shrink():
            await asyncio.sleep(0)
        await asyncio.to_thread(self.trim)
        return self.rss()
