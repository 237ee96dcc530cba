"""Indexes of segments: where the records of one queue are, and which messages they hold."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate, islice
from typing import NamedTuple

from ..wire.properties import RANKED, TIMED

ENTRY = 3
"""Numbers an index has for each record."""
_TIMED, _RANKED = 1 << 63, 1 << 31
_COUNT = 0x7FFFFFFF
INTERVAL_MAX = 0x7FFFFFFF
"""How far the first and the last number of an entry may be apart, and how many it may count."""


class IndexEntry:
    """Location of a record, and the queue's messages in it: `count` of them, numbered `first` to
    `last`; `special` says whether they carry an expiration or a priority."""

    __slots__ = ("count", "first", "last", "offset", "size", "special")

    def __init__(self, first: int, second: int, third: int) -> None:
        self.first = first
        self.offset = second >> 32
        self.size = second & 0xFFFFFFFF
        self.count = third & _COUNT
        self.last = first + (third >> 32 & 0x7FFFFFFF)
        self.special = TIMED * bool(third & _TIMED) | RANKED * bool(third & _RANKED)

    @property
    def is_lost(self) -> bool:
        """Whether the record is gone; its entry keeps the ordinals of those behind it."""
        return not self.size

    @property
    def location(self) -> tuple[int, int]:
        """Offset and size of the record."""
        return self.offset, self.size

    @property
    def share_bytes(self) -> int:
        """About how many bytes of the record belong to the queue's messages."""
        return self.size * self.count // (self.last - self.first + 1)


class RecordIndex:
    """The index of a queue's records in a segment, in the order of their sequence numbers."""

    __slots__ = ("_ends", "numbers")

    def __init__(self, numbers: array[int] | None = None) -> None:
        self.numbers = array("Q") if numbers is None else numbers
        self._ends: array[int] | None = None
        """Running totals of messages by record, computed on demand; see `ends`."""

    def __len__(self) -> int:
        return len(self.numbers) // ENTRY

    def add(
        self, first: int, last: int, count: int, offset: int, size: int, *, special: int
    ) -> None:
        third = (last - first) << 32 | count
        third |= _TIMED * bool(special & TIMED) | _RANKED * bool(special & RANKED)
        self.numbers.extend((first, offset << 32 | size, third))

    def __getitem__(self, ordinal: int) -> IndexEntry:
        """The entry at an ordinal; beyond the end, a lost one without messages. An index that was
        rebuilt from a file that was cut short has fewer records than its part."""
        if ordinal >= len(self):
            return IndexEntry(0, 0, 0)
        return IndexEntry(*self.numbers[ordinal * ENTRY : (ordinal + 1) * ENTRY])

    def at(self, sequence: int) -> int:
        """The ordinal of the last record that begins at or before this message; -1 for none."""
        return bisect_right(range(len(self)), sequence, key=self._first) - 1

    def ends(self) -> array[int]:
        """For each record, how many messages it and those before it hold.

        Thread safe for a complete index: the result is assigned when it is complete.
        """
        ends = self._ends or array("Q")
        counts = [third & _COUNT for third in self.numbers[ENTRY * len(ends) + 2 :: ENTRY]]
        total = ends[-1] if ends else 0
        more = islice(accumulate(counts, initial=total), 1, None)
        if ends:
            ends.extend(more)
        else:
            self._ends = ends = array("Q", more)
        return ends

    def size_bytes(self, low: int, high: int) -> int:
        """Size of the queue's messages in the records at ordinals `low` to `high - 1`."""
        return sum(self[ordinal].share_bytes for ordinal in range(low, min(high, len(self))))

    def at_offset(self, offset: int) -> int | None:
        """The ordinal of the record at this offset, for a part whose offsets ascend."""
        ordinal = bisect_left(range(len(self)), offset, key=self._offset)
        found = ordinal < len(self) and self._offset(ordinal) == offset
        return ordinal if found else None

    def _first(self, ordinal: int) -> int:
        return self.numbers[ordinal * ENTRY]

    def _offset(self, ordinal: int) -> int:
        return self.numbers[ordinal * ENTRY + 1] >> 32


class IndexSummary(NamedTuple):
    """A part's number of records, and the sequence numbers of its first and last message: what is
    known of it without its index."""

    records: int
    first: int
    last: int
