"""Adds the header `x-stream-offset` to the messages that a stream delivers.

Consumers at the end of a stream get the same messages, so rewritten entries are cached for a while.
Unacknowledged deliveries of a stream hold no bytes: an ack only gives credit, and nothing is ever
requeued.
"""

from __future__ import annotations

from typing import Final

from ..message.batch import Batch, MemoryUsage
from ..message.queue_entry import MessageRange, QueueEntry
from .header_rewriting import with_header

ENTRIES_MAX: Final = 8
_WHOLE: Final = 4
"""An entry is rewritten as a whole for a consumer whose prefetch covers a quarter of it. For others
only the delivered messages are rewritten: there may be more of them, at more offsets, than entries
in the cache."""
_NO_BYTES: Final = "the bytes of a stream's deliveries are not kept"


class DeliveredPlaceholder(Batch):
    """The sequence numbers of a delivered batch, without its bytes."""

    __slots__ = ()

    def __init__(self, batch: Batch) -> None:
        super().__init__(b"", batch.sequence, batch.count, batch.attributes, batch.arrived_ms)
        self.resident = False

    @property
    def size_bytes(self) -> int:
        return 0

    def body_bytes(self, index: int) -> int:
        return 0

    def envelope(self, index: int) -> bytes:
        raise AssertionError(_NO_BYTES)

    def properties(self, index: int) -> bytes:
        raise AssertionError(_NO_BYTES)

    def body(self, index: int) -> bytes:
        raise AssertionError(_NO_BYTES)


def placeholder(messages: MessageRange) -> MessageRange:
    """Returns the range that the session keeps until it is acknowledged."""
    entry = messages.entry
    return MessageRange(
        QueueEntry(DeliveredPlaceholder(entry.batch), entry.selection), messages.low, messages.high
    )


class OffsetHeaders:
    """Adds to messages their offset in a header, and caches rewritten entries."""

    def __init__(self, header: bytes, memory: MemoryUsage) -> None:
        self._header = header
        self._memory = memory
        self._rewritten: dict[QueueEntry, QueueEntry] = {}

    def add(self, messages: MessageRange, offset: int, prefetch: int) -> MessageRange:
        """Returns the range, whose first message is at `offset`, with offset headers."""
        entry = messages.entry
        whole = self._rewritten.get(entry)
        if whole is None:
            if prefetch * _WHOLE < entry.count:
                return with_header(messages, self._header, range(offset, offset + messages.count))
            whole = self._rewrite(entry, offset - messages.low)
        return MessageRange(whole, messages.low, messages.high)

    def _rewrite(self, entry: QueueEntry, first: int) -> QueueEntry:
        found = with_header(
            MessageRange(entry, 0, entry.count), self._header, range(first, first + entry.count)
        ).entry
        found.batch.charge(self._memory)
        if len(self._rewritten) >= ENTRIES_MAX:
            self._rewritten.clear()
        self._rewritten[entry] = found
        return found

    def clear(self) -> None:
        self._rewritten.clear()
