"""The last messages of a broadcast, for readers that come back."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Final

from .batch import EncodedBatch

KEPT_BYTES: Final = 128 * 1024
TOTAL_BYTES: Final = 64 * 1024 * 1024
"""The limit of all broadcasts together."""
_TEXT_BYTES: Final = 120
"""About the memory of a text and its cursor beside their characters."""


class RecentBytes:
    """The bytes that all broadcasts keep. Above the limit those that have more than their share
    lose their oldest messages, so nobody takes the room of others."""

    def __init__(self) -> None:
        self._size_bytes = 0
        self._turns: OrderedDict[RecentMessages, None] = OrderedDict()
        """Those that keep something; the next one to be looked at in front."""

    def add(self, size: int, to: RecentMessages) -> None:
        self._size_bytes += size
        self._turns[to] = None
        while self._size_bytes > TOTAL_BYTES:
            one = next(iter(self._turns))
            self._turns.move_to_end(one)
            if one.size_bytes >= TOTAL_BYTES // len(self._turns):
                one.drop_oldest()

    def remove(self, size: int, of: RecentMessages) -> None:
        self._size_bytes -= size
        if not of.size_bytes:
            self._turns.pop(of, None)


class RecentMessages:
    """Batches with the number of their first message."""

    def __init__(self, kept: RecentBytes) -> None:
        self._kept = kept
        self._batches: deque[tuple[int, EncodedBatch]] = deque()
        self.size_bytes = 0

    def add(self, number: int, batch: EncodedBatch) -> None:
        excess = _excess(batch)
        if excess:  # What came before would leave a gap.
            self.clear()
        # Without what was joined for the readers of now.
        kept = EncodedBatch(batch.texts[excess:], batch.cursors[excess:])
        if not kept.texts:
            return
        self._batches.append((number + excess, kept))
        self.size_bytes += _size(kept)
        self._kept.add(_size(kept), self)
        while self.size_bytes > KEPT_BYTES:
            self.drop_oldest()

    def clear(self) -> None:
        while self._batches:
            self.drop_oldest()

    def drop_oldest(self) -> None:
        size = _size(self._batches.popleft()[1])
        self.size_bytes -= size
        self._kept.remove(size, self)

    def first(self, end: int) -> int:
        """Returns the number of the oldest message that is kept, `end` without any."""
        return self._batches[0][0] if self._batches else end

    def since(self, number: int) -> Iterator[EncodedBatch]:
        """Yields the messages from a number on, which must be kept or the end."""
        for first, batch in self._batches:
            if first + len(batch.texts) > number:
                yield batch.behind(max(0, number - first))


def _size(batch: EncodedBatch) -> int:
    return batch.size_bytes + _TEXT_BYTES * len(batch.texts)


def _excess(batch: EncodedBatch) -> int:
    """Returns how many messages of a batch are too old to be kept."""
    excess_bytes, count = _size(batch) - KEPT_BYTES, 0
    while excess_bytes > 0:
        excess_bytes -= len(batch.texts[count]) + _TEXT_BYTES
        count += 1
    return count
