"""A cache of message records that were read and checked recently.

Queues with few messages each share records, which would be read again for each queue. The cache is
bounded in bytes and drops the least recently used records first. The alarms count it and shrink it
when memory is short.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .codec import MessageRecord

RECENT_BYTES: Final = 16 * 1024 * 1024
"""Size limit, including the decoded shares of the records."""
DROPPED_AT_ONCE: Final = 1_000
"""Number of records; freeing one takes about a microsecond."""


class RecordCache:
    """A cache of records by segment and offset. Thread safe."""

    def __init__(self) -> None:
        self._records: OrderedDict[tuple[int, int], MessageRecord] = OrderedDict()
        self.size_bytes = 0
        self.max_bytes = RECENT_BYTES
        """Size above which the least recently used records are dropped."""
        self._lock = Lock()

    def get(self, segment: int, offset: int) -> MessageRecord | None:
        with self._lock:
            found = self._records.get((segment, offset))
            if found is not None:
                self._records.move_to_end((segment, offset))
            return found

    def add(self, segment: int, offset: int, record: MessageRecord) -> None:
        """Adds a record, unless it is there already."""
        with self._lock:
            if (segment, offset) in self._records:
                return
            self._records[segment, offset] = record
            self.size_bytes += record.size_bytes
            while self.size_bytes > self.max_bytes and len(self._records) > 1:
                self._drop_oldest()

    def shrink(self) -> bool:
        """Drops some of the least recently used records; True if there are more."""
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
