"""Alarms: while memory or disk is short, connections that publish are not read.

They are computed from measurements. Consuming, acks, requeues, dead letters and the hub's retries
are never blocked, since they end an alarm. An alarm ends at a lower level than it began at, so that
it does not go on and off all the time.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from ..errors import LowOnDisk, LowOnMemory
from ..message.batch import MemoryUsage
from .amount import in_words
from .partial_content import KEPT_SHARE, OWNER_SHARE, PartialContents

logger = logging.getLogger(__name__)

CACHE_SHARE: Final = 8
"""The cache may take this part of the memory limit."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits in bytes, 0 for none. The memory alarm ends at 5/6 of its bound (60 % and 50 % of the
    memory), the disk alarm at 6/5."""

    memory: int = 0
    """For accounted memory: messages, buffers, objects."""
    rss: int = 0
    """For the process as a whole: the second guard, for memory that is not accounted."""
    disk_free: int = 0


class Reading(NamedTuple):
    """Measured values."""

    other_bytes: int = 0
    """Accounted memory beside the messages, whose bytes are known at any time."""
    rss_bytes: int | None = None
    disk_free_bytes: int | None = None
    store_is_full: bool = False
    """The store was refused space, whatever the file system says is free."""


class Cache(Protocol):
    """A cache that can be emptied at any time, at the price of reading again."""

    size_bytes: int
    max_bytes: int

    def shrink(self) -> bool:
        """Drops a part; True if there is more."""


class BlockedConnection(Protocol):
    """A connection that stopped at a publish."""

    def unblock(self) -> None:
        """Continues where it stopped."""


class Alarms:
    """The memory and disk alarms. Publishing code stops with `require_none`, or with `block`.

    Before a memory alarm blocks publishers, `cache` is emptied and `unfinished` content ended.
    """

    def __init__(self, usage: MemoryUsage, bounds: Bounds | None = None, *, cache: Cache) -> None:
        self.any = False
        self.memory = False
        self.disk = False
        self.ceiling_bytes = sys.maxsize
        """For messages in memory, partial ones included."""
        self._blocked: dict[BlockedConnection, None] = {}
        self._usage = usage
        self._cache = cache
        self._cache_max_bytes = cache.max_bytes
        self.unfinished = PartialContents()
        self._bounds = bounds or Bounds()
        self._last = Reading()
        self._accounted = self._rss = self._free = False
        self._store_is_short = False
        self._disk_room = sys.maxsize
        self.measure(self._last)

    @property
    def bounds(self) -> Bounds:
        return self._bounds

    @bounds.setter
    def bounds(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.measure(self._last)

    @property
    def reading(self) -> Reading:
        """The last values that were measured."""
        return self._last

    @property
    def used_bytes(self) -> int:
        """Accounted memory in bytes."""
        return self._needed_bytes + self._cache.size_bytes

    @property
    def _needed_bytes(self) -> int:
        return self._usage.resident_bytes + self.unfinished.bytes + self._last.other_bytes

    @property
    def is_due(self) -> bool:
        """Whether a turn has to `update`."""
        known_bytes = self._usage.resident_bytes + self.unfinished.bytes + self._cache.size_bytes
        return self.memory or known_bytes > self.ceiling_bytes

    @property
    def reason(self) -> str:
        """The reason in `connection.blocked`; empty without an alarm."""
        words = [word for word in ("memory", "disk") if getattr(self, word)]
        return f"low on {' & '.join(words)}" if words else ""

    def require_none(self) -> None:
        """Raises `LowOnDisk` or `LowOnMemory` during an alarm."""
        if self.any:
            raise LowOnDisk(self.reason) if self.disk else LowOnMemory(self.reason)

    def block(self, connection: BlockedConnection) -> None:
        """Blocks a connection until the last alarm is over."""
        self._blocked[connection] = None

    def forget(self, connection: BlockedConnection) -> None:
        """Removes a connection that has ended."""
        self._blocked.pop(connection, None)

    # -- measuring

    def measure(self, reading: Reading) -> None:
        """Updates the alarms with new measurements."""
        self._last = reading
        bounds = self._bounds
        if bounds.memory:
            self._cache.max_bytes = min(self._cache_max_bytes, bounds.memory // CACHE_SHARE)
            self.ceiling_bytes = bounds.memory - reading.other_bytes
            self.unfinished.owner_max_bytes = bounds.memory // OWNER_SHARE
        else:
            self._cache.max_bytes = self._cache_max_bytes
            self.ceiling_bytes = self.unfinished.owner_max_bytes = sys.maxsize
        self._rss = self._rss_is_high(reading.rss_bytes)
        free = reading.disk_free_bytes
        if not bounds.disk_free:
            self._free = False
        elif free is not None:
            self._free = free < bounds.disk_free * (6 if self._free else 5) // 5
            self._disk_room = free - bounds.disk_free
        self.update()

    def count_written(self, size: int) -> None:
        """Subtracts bytes written since the last measurement: a fast publisher fills a small disk
        within a second."""
        self._disk_room -= size
        if self._disk_room < 0 and self._bounds.disk_free and not self._free:
            self._free = True
            self.update()

    @property
    def store_is_short(self) -> bool:
        return self._store_is_short

    @store_is_short.setter
    def store_is_short(self, short: bool) -> None:
        """Sets whether the store uses its reserve of disk space."""
        self._store_is_short = short
        self.update()

    def update(self) -> None:
        """Updates the alarms after the bytes of messages have changed."""
        bound = self._bounds.memory
        limit = bound * 5 // 6 if self._accounted else bound
        if bound and self.used_bytes > limit:
            self._cache.shrink()
        if bound and self._needed_bytes > bound:
            excess_bytes = self._needed_bytes - bound * 5 // 6
            kept_bytes = max(bound // KEPT_SHARE, self.unfinished.bytes - excess_bytes)
            self.unfinished.shrink(kept_bytes)
        self._accounted = bool(bound) and self._needed_bytes > limit
        self._set_memory(self._accounted or self._rss)
        self._set_disk(self._free or self._store_is_short or self._last.store_is_full)
        before, self.any = self.any, self.memory or self.disk
        if before and not self.any:
            self._unblock()

    def _rss_is_high(self, rss_bytes: int | None) -> bool:
        """Whether the process takes too much memory. Only while messages are a good part of it: if
        they are not, consuming would not end the alarm, for freed memory need not leave the
        process."""
        bounds = self._bounds
        if not bounds.rss or not bounds.memory or rss_bytes is None:
            return False
        if self._rss:
            return rss_bytes > bounds.rss * 5 // 6 and self._needed_bytes > bounds.memory * 5 // 24
        return rss_bytes > bounds.rss and self._needed_bytes > bounds.memory // 4

    def _set_memory(self, low: bool) -> None:
        if low is self.memory:
            return
        self.memory = low
        bound, used = self._bounds.memory, in_words(self.used_bytes)
        if not low:
            logger.warning("memory alarm over: messages and buffers take %s", used)
        elif self._accounted:
            logger.warning(
                "memory alarm: messages and buffers take %s, the limit is %s (memory_limit); "
                "publishers are blocked until they take %s",
                used, in_words(bound), in_words(bound * 5 // 6),
            )  # fmt: skip
        else:
            logger.warning(
                "memory alarm: the process takes %s, the limit is %s, messages and buffers are "
                "%s of it; publishers are blocked until it is less",
                in_words(self._last.rss_bytes or 0), in_words(self._bounds.rss), used,
            )  # fmt: skip

    def _set_disk(self, low: bool) -> None:
        if low is self.disk:
            return
        self.disk = low
        free, bound = self._last.disk_free_bytes, self._bounds.disk_free
        has = "unknown" if free is None else in_words(free)
        if not low:
            logger.warning("disk alarm over: %s are free", has)
        elif self._free:
            logger.warning(
                "disk alarm: %s are free for the data directory, the limit is %s "
                "(disk_free_limit); publishers are blocked until %s are free",
                has, in_words(bound), in_words(bound * 6 // 5),
            )  # fmt: skip
        else:
            logger.warning(
                "disk alarm: writes to the data directory fail for lack of space, with %s free on "
                "its file system; publishers are blocked until they succeed",
                has,
            )

    def _unblock(self) -> None:
        blocked, self._blocked = self._blocked, {}
        for connection in blocked:
            connection.unblock()
