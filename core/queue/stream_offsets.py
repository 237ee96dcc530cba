"""What readers of a stream are shown of its messages: each with its offset.

Readers at the end of a stream get the same messages, so the dressed form of an entry is kept for a
while. What waits for an ack has no bytes at all: an ack is credit, and nothing comes again.
"""

from __future__ import annotations

from ..message.batch import Batch, MemoryUsage, MessageRange, QueueEntry
from .header_rewriting import dressed

RUNS_MAX = 8
_WHOLE = 4
"""An entry is dressed as a whole for who can take this part of it at a time. Who can't gets what he
takes and no more: there may be more such readers, at more places, than runs are kept."""


class Receipt(Batch):
    """Stands for the messages of a batch that were delivered: their numbers, and nothing else."""

    __slots__ = ()

    def __init__(self, batch: Batch) -> None:
        super().__init__(b"", batch.sequence, batch.count, batch.attributes, batch.arrived_ms)
        self.resident = False

    @property
    def size_bytes(self) -> int:
        return 0

    def body_bytes(self, index: int) -> int:
        return 0

    def _bytes(self, index: int) -> bytes:
        raise AssertionError("what was delivered by a stream is not looked at any more")

    envelope = properties = body = _bytes


def receipt(messages: MessageRange) -> MessageRange:
    """What the session gets to acknowledge."""
    entry = messages.entry
    return MessageRange(
        QueueEntry(Receipt(entry.batch), entry.selection), messages.low, messages.high
    )


class OffsetHeaders:
    """Dresses messages with their offsets under the name `header`."""

    def __init__(self, header: bytes, memory: MemoryUsage) -> None:
        self._header = header
        self._memory = memory
        self._dressed: dict[QueueEntry, QueueEntry] = {}

    def shown(self, messages: MessageRange, offset: int, prefetch: int) -> MessageRange:
        """The range, whose first message has that offset, for a consumer with that prefetch."""
        entry = messages.entry
        whole = self._dressed.get(entry)
        if whole is None:
            if prefetch * _WHOLE < entry.count:
                return dressed(messages, self._header, range(offset, offset + messages.count))
            whole = self._dress(entry, offset - messages.low)
        return MessageRange(whole, messages.low, messages.high)

    def _dress(self, entry: QueueEntry, first: int) -> QueueEntry:
        found = dressed(
            MessageRange(entry, 0, entry.count), self._header, range(first, first + entry.count)
        ).entry
        found.batch.charge(self._memory)
        if len(self._dressed) >= RUNS_MAX:
            self._dressed.clear()
        self._dressed[entry] = found
        return found

    def let_go(self) -> None:
        self._dressed.clear()
