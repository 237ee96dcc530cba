"""A cache of message records that were read and checked recently.

Queues with few messages each share records, which are read for one after the other. The cache is
bounded in bytes and drops the least recently used first. The alarms count it and shrink it when
memory is short.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .codec import MessageRecord

RECENT_BYTES = 16 * 1024 * 1024
"""Size limit, with the decoded shares of the records."""
DROPPED_AT_ONCE = 1_000
"""Records; freeing one takes about a microsecond."""


class RecordCache:
    """Records by segment and offset. Thread safe."""

    def __init__(self) -> None:
        self._records: OrderedDict[tuple[int, int], MessageRecord] = OrderedDict()
        self.size_bytes = 0
        self.max_bytes = RECENT_BYTES
        """Beyond it the least recently used is dropped."""
        self._lock = Lock()

    def get(self, segment: int, offset: int) -> MessageRecord | None:
        with self._lock:
            found = self._records.get((segment, offset))
            if found is not None:
                self._records.move_to_end((segment, offset))
            return found

    def add(self, segment: int, offset: int, record: MessageRecord) -> None:
        """Adds a record; its bytes must not be a view of a larger buffer."""
        with self._lock:
            if (segment, offset) in self._records:
                return
            self._records[segment, offset] = record
            self.size_bytes += record.size_bytes
            while self.size_bytes > self.max_bytes and len(self._records) > 1:
                self._drop_oldest()

    def shrink(self) -> bool:
        """Drops some of the oldest; True if there are more."""
        with self._lock:
            for _ in range(min(DROPPED_AT_ONCE, len(self._records))):
                self._drop_oldest()
            return bool(self._records)

    def _drop_oldest(self) -> None:
        self.size_bytes -= self._records.popitem(last=False)[1].size_bytes

    def forget(self, segment: int) -> None:
        """Drops the records of a segment that is about to be removed."""
        with self._lock:
            for key in [key for key in self._records if key[0] == segment]:
                self.size_bytes -= self._records.pop(key).size_bytes
