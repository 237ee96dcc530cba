"""Message records that were read lately, checked and ready to be decoded again.

Queues with a few messages each lie among each other, so each record is wanted by many of them, one
after the other. What is kept is bounded in bytes; the oldest goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from .codec import MessageRecord

RECENT_BYTES = 16 * 1024 * 1024
"""With what their shares take once they are decoded."""


class RecentRecords:
    """By segment and offset. Thread safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[int, int], MessageRecord] = OrderedDict()
        self._bytes = 0
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
            self._bytes += record.size_bytes
            while self._bytes > RECENT_BYTES and len(self._held) > 1:
                self._bytes -= self._held.popitem(last=False)[1].size_bytes

    def forget(self, segment: int) -> None:
        """Its file is about to go."""
        with self._lock:
            for key in [key for key in self._held if key[0] == segment]:
                self._bytes -= self._held.pop(key).size_bytes
