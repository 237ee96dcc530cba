"""Message records that were read lately, checked and ready to be decoded again.

Queues with a few messages each lie among each other, so each record is wanted by many of them, one
after the other. What is kept is bounded in bytes; the oldest goes first. The alarms count
it and give it up when memory is short, for all of it can be read again.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .codec import MessageRecord

RECENT_BYTES = 16 * 1024 * 1024
"""With what their shares take once they are decoded."""
DROPPED_AT_ONCE = 1_000
"""Records; freeing one takes about a microsecond."""


class RecordCache:
    """By segment and offset. Thread safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[int, int], MessageRecord] = OrderedDict()
        self.size_bytes = 0
        self.max_bytes = RECENT_BYTES
        """Beyond it the oldest goes."""
        self._lock = Lock()

    def get(self, segment: int, offset: int) -> MessageRecord | None:
        with self._lock:
            found = self._held.get((segment, offset))
            if found is not None:
                self._held.move_to_end((segment, offset))
            return found

    def add(self, segment: int, offset: int, record: MessageRecord) -> None:
        """Keeps a record; its bytes must not be a part of many more."""
        with self._lock:
            if (segment, offset) in self._held:
                return
            self._held[segment, offset] = record
            self.size_bytes += record.size_bytes
            while self.size_bytes > self.max_bytes and len(self._held) > 1:
                self._drop_oldest()

    def shrink(self) -> bool:
        """Drops some of the oldest; True if there are more."""
        with self._lock:
            for _ in range(min(DROPPED_AT_ONCE, len(self._held))):
                self._drop_oldest()
            return bool(self._held)

    def _drop_oldest(self) -> None:
        self.size_bytes -= self._held.popitem(last=False)[1].size_bytes

    def forget(self, segment: int) -> None:
        """Its file is about to go."""
        with self._lock:
            for key in [key for key in self._held if key[0] == segment]:
                self.size_bytes -= self._held.pop(key).size_bytes
