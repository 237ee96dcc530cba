"""Indexes of segments: the locations of one queue's records, and the messages in each."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate, islice
from typing import Final, NamedTuple

from ..wire.properties import RANKED, TIMED

ENTRY: Final = 3
"""How many numbers an index has for each record."""
_TIMED, _RANKED = 1 << 63, 1 << 31
SIZE, COUNT = 0xFFFFFFFF, 0x7FFFFFFF
"""Bits of an entry's second and third number: the record's size, and how many messages of it."""
INTERVAL_MAX: Final = 0x7FFFFFFF
"""Limit of the distance between an entry's first and last message, and of its count."""


class IndexEntry:
    """The location of a record, and the queue's messages in it: `count` of them, numbered `first`
    to `last`; `special` says whether they have an expiration or a priority."""

    __slots__ = ("count", "first", "last", "offset", "size", "special")

    def __init__(self, first: int, second: int, third: int) -> None:
        self.first = first
        self.offset = second >> 32
        self.size = second & SIZE
        self.count = third & COUNT
        self.last = first + (third >> 32 & 0x7FFFFFFF)
        self.special = TIMED * bool(third & _TIMED) | RANKED * bool(third & _RANKED)

    @property
    def is_lost(self) -> bool:
        """Whether the record is lost; its entry keeps the ordinals of later records."""
        return not self.size

    @property
    def location(self) -> tuple[int, int]:
        """The offset and the size of the record."""
        return self.offset, self.size

    @property
    def share_bytes(self) -> int:
        """The approximate size of the queue's messages in the record."""
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
        """Returns the entry at an ordinal; beyond the end, a lost one without messages. An index
        that was rebuilt from a truncated file has fewer records than its part."""
        if ordinal >= len(self):
            return IndexEntry(0, 0, 0)
        return IndexEntry(*self.numbers[ordinal * ENTRY : (ordinal + 1) * ENTRY])

    def at(self, sequence: int) -> int:
        """Returns the ordinal of the last record that begins at or before this message, or -1."""
        return bisect_right(range(len(self)), sequence, key=self._first) - 1

    def ends(self) -> array[int]:
        """Returns, for each record, the number of messages in it and the records before it.

        Thread safe for a complete index: the result is assigned when it is complete.
        """
        ends = self._ends or array("Q")
        counts = [third & COUNT for third in self.numbers[ENTRY * len(ends) + 2 :: ENTRY]]
        total = ends[-1] if ends else 0
        more = islice(accumulate(counts, initial=total), 1, None)
        if ends:
            ends.extend(more)
        else:
            self._ends = ends = array("Q", more)
        return ends

    def find(self, low: int, high: int, position: int) -> tuple[int, int] | None:
        """Finds the record with the message at `position` of a range of records: returns its
        ordinal, and the position of its first message. None if the index is too short."""
        ends = self.ends()
        high = min(high, len(ends))
        before = ends[low - 1] if 0 < low <= len(ends) else 0
        ordinal = bisect_right(ends, before + position, low, high) if low < high else high
        if ordinal >= high:
            return None
        return ordinal, (ends[ordinal - 1] if ordinal else 0) - before

    def size_bytes(self, low: int, high: int) -> int:
        """Returns the approximate size of the queue's messages in records `low` to `high - 1`."""
        return sum(self[ordinal].share_bytes for ordinal in range(low, min(high, len(self))))

    def _first(self, ordinal: int) -> int:
        return self.numbers[ordinal * ENTRY]


class IndexSummary(NamedTuple):
    """A part's number of records, and the sequence numbers of its first and last message, which are
    known without its index."""

    records: int
    first: int
    last: int
