"""What one segment holds for one queue, and what of it is still to be kept.

The messages of a record that are the queue's are counted by their position in the entry; records by
their ordinal in the part. Both are settled from the front as a rule; what is settled out of order
is noted until the front has come there.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from typing import NamedTuple

from ..message.batch import MessageRange, PagedOut, QueueEntry
from ..slices import release
from ..wire.properties import RANKED, TIMED

ENTRY = 3
"""Numbers an index has for each record."""
_TIMED, _RANKED = 1 << 63, 1 << 31
_COUNT = 0x7FFFFFFF
INTERVAL_MAX = 0x7FFFFFFF
"""How far the first and the last number of an entry may be apart, and how many it may count."""


class IndexEntry:
    """Where a record is, and which messages of the queue it holds: `count` of them, numbered
    `first` to `last`; `special` if they carry an expiration or a priority."""

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
        """Whether only a place is kept for it: a later record says that there was one."""
        return not self.size

    @property
    def place(self) -> tuple[int, int]:
        """Offset and size of the record."""
        return self.offset, self.size

    @property
    def share_bytes(self) -> int:
        """About what the queue's messages take of it, if others' lie between them."""
        return self.size * self.count // (self.last - self.first + 1)


class RecordIndex:
    """The records of a part, in the order of their sequence numbers."""

    __slots__ = ("_ends", "numbers")

    def __init__(self, numbers: array[int] | None = None) -> None:
        self.numbers = array("Q") if numbers is None else numbers
        self._ends: array[int] | None = None
        """How many messages the records up to each one hold, as far as somebody has asked."""

    def __len__(self) -> int:
        return len(self.numbers) // ENTRY

    def add(
        self, first: int, last: int, count: int, offset: int, size: int, *, special: int
    ) -> None:
        third = (last - first) << 32 | count
        third |= _TIMED * bool(special & TIMED) | _RANKED * bool(special & RANKED)
        self.numbers.extend((first, offset << 32 | size, third))

    def __getitem__(self, ordinal: int) -> IndexEntry:
        """Beyond the end: one that is lost, of no messages. An index that was made anew, since the
        file was cut short, has fewer records than its part."""
        if ordinal >= len(self):
            return IndexEntry(0, 0, 0)
        return IndexEntry(*self.numbers[ordinal * ENTRY : (ordinal + 1) * ENTRY])

    def at(self, sequence: int) -> int:
        """The ordinal of the last record that begins at or before this message; -1 for none."""
        return bisect_right(range(len(self)), sequence, key=self._first) - 1

    def ends(self) -> array[int]:
        """For each record, how many messages it and those before it hold.

        Two threads may ask an index that is complete: it is noted when it is, not before.
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
        """What the queue's messages in the records at ordinals `low` to `high - 1` take."""
        return sum(self[ordinal].share_bytes for ordinal in range(low, min(high, len(self))))

    def at_offset(self, offset: int) -> int | None:
        """The ordinal of the record that stands there, for a part whose offsets ascend."""
        ordinal = bisect_left(range(len(self)), offset, key=self._offset)
        found = ordinal < len(self) and self._offset(ordinal) == offset
        return ordinal if found else None

    def _first(self, ordinal: int) -> int:
        return self.numbers[ordinal * ENTRY]

    def _offset(self, ordinal: int) -> int:
        return self.numbers[ordinal * ENTRY + 1] >> 32


class IndexSummary(NamedTuple):
    """What is known of a part without its index: how many records it has, and the numbers of its
    first and last message."""

    records: int
    first: int
    last: int


class SegmentPart:
    """One queue's records of one segment; `left` messages are to be kept.

    `dead` are ordinals behind `front` of which nothing is left. `partial` has, for records that
    are not in memory as runs, which positions are settled (a bit each). `entries` are
    those in memory, by ordinal; `paged_out_ranges` the ranges that are not. `pieces` say which
    positions of its entry a record holds, where these are not all.
    """

    __slots__ = (
        "dead",
        "entries",
        "first",
        "front",
        "index",
        "last",
        "left",
        "next_offset",
        "paged_out_ranges",
        "partial",
        "pieces",
        "queue_id",
        "records",
        "segment",
        "snapshot",
        "special",
    )  # fmt: skip

    def __init__(self, segment: Segment, queue_id: int) -> None:
        self.segment = segment
        self.queue_id = queue_id
        self.records = 0
        self.left = 0
        self.front = 0
        self.first = 0
        self.last = 0
        self.special = 0
        self.next_offset = 0
        """What the queue's next message has for a number, if it numbers them."""
        self.dead: set[int] = set()
        self.partial: dict[int, bytes] = {}
        self.entries: dict[int, QueueEntry] = {}
        self.pieces: dict[int, Fragment] | None = None
        self.paged_out_ranges: list[PagedOut] = []
        self.index: RecordIndex | None = None
        self.snapshot: Snapshot | None = None
        """What is just taken down of it for a checkpoint, in slices."""

    @property
    def shape(self) -> IndexSummary:
        return IndexSummary(self.records, self.first, self.last)

    def add(self, first: int, last: int, count: int, offset: int, size: int, special: int) -> int:
        """A record more; gives its ordinal."""
        if self.index is None:
            self.index = RecordIndex()
            self.first = first
        self.index.add(first, last, count, offset, size, special=special)
        self.last = last
        self.special |= special
        self.left += count
        self.segment.grew(count)
        self.records += 1
        return self.records - 1

    def number(self, first: int) -> None:
        """Says which number the first message of the last record has in its queue."""
        if self.index is not None:
            self.next_offset = first + self.index[len(self.index) - 1].count

    def hold(self, ordinal: int, entry: QueueEntry) -> SettledSet:
        """The record is in memory as this entry."""
        self.entries[ordinal] = entry
        kept = SettledSet(self, ordinal, entry.count)
        entry.settled_set = kept
        bits = self.partial.pop(ordinal, None)
        if bits is not None:
            kept.set_flags(unpacked(bits, entry.count))
        return kept

    def let_go(self, ordinal: int) -> None:
        """The record is not in memory any more, though it is to be kept."""
        del self.entries[ordinal]
        if self.pieces is not None:
            self.pieces.pop(ordinal, None)

    def hold_paged_out(self, paged_out: PagedOut, low: int, high: int) -> None:
        """The records at these ordinals are not in memory; the range says where they are."""
        paged_out.location = PagedOutLocation(self, low, high, len(self.paged_out_ranges))
        self.paged_out_ranges.append(paged_out)

    def forget_paged_out(self, paged_out: PagedOut) -> None:
        """A range has ended, or goes elsewhere. The last one takes its place."""
        location, last = paged_out.location, self.paged_out_ranges.pop()
        assert isinstance(location, PagedOutLocation)
        if last is not paged_out:
            moved = last.location
            assert isinstance(moved, PagedOutLocation)
            self.paged_out_ranges[location.at] = last
            moved.at = location.at

    def holds_paged_out(self, paged_out: PagedOut) -> bool:
        """Whether a range is still one of this part's: it may have been discarded or moved."""
        location = paged_out.location
        return (
            isinstance(location, PagedOutLocation)
            and location.part is self
            and location.at < len(self.paged_out_ranges)
            and self.paged_out_ranges[location.at] is paged_out
        )

    @property
    def died_count(self) -> int:
        """Of how many records nothing is left."""
        return self.front + len(self.dead)

    def is_dead(self, ordinal: int) -> bool:
        return ordinal < self.front or ordinal in self.dead

    def settled(self, count: int, ordinal: int = 0) -> None:
        """So many messages less of that record are to be kept."""
        if self.snapshot is not None and ordinal < self.snapshot.taken:
            self.snapshot.settled_since += count
        self.left -= count
        segment = self.segment
        segment.left -= count
        if not self.left and segment.sealed:
            segment.parts.pop(self.queue_id, None)

    def hand_on(self, other: SegmentPart, count: int) -> None:
        """So many messages that are to be kept belong to the other part from here on."""
        self.left -= count
        self.segment.left -= count
        other.left += count
        other.segment.grew(count)

    def died(self, ordinal: int) -> None:
        """Nothing is left of a record."""
        self.entries.pop(ordinal, None)
        self.partial.pop(ordinal, None)
        if self.pieces is not None:
            self.pieces.pop(ordinal, None)
        if ordinal != self.front:
            self.dead.add(ordinal)
            return
        self.front += 1
        while self.dead and self.front in self.dead:
            self.dead.remove(self.front)
            self.front += 1

    def settled_bits(self) -> Iterator[tuple[int, bytes]]:
        """Ordinals of records of which some messages are settled, and which positions."""
        yield from self.partial.items()
        for ordinal in list(self.entries):
            bits = self.settled_of(ordinal)
            if bits is not None:
                yield ordinal, bits

    def settled_of(self, ordinal: int) -> bytes | None:
        """Which messages of a record are settled, a bit for each; None if none of them is."""
        entry = self.entries.get(ordinal)
        if entry is None:
            return self.partial.get(ordinal)
        kept = entry.settled_set
        assert isinstance(kept, SettledSet)
        piece = None if self.pieces is None else self.pieces.get(ordinal)
        low, high, left = (
            (0, entry.count, kept.left) if piece is None else (piece.low, piece.high, piece.left)
        )
        return kept.settled_bits(low, high) if left < high - low else None

    def revive(self, ordinal: int) -> None:
        """All messages of a record are to be kept, though something of it counted as settled."""
        self.partial.pop(ordinal, None)
        self.dead.discard(ordinal)
        if ordinal < self.front:
            self.dead.update(range(ordinal + 1, self.front))
            self.front = ordinal

    def clear(self) -> Iterator[None]:
        """Nothing of it is to be kept, from now on; the steps free what it took in memory."""
        self.snapshot = None
        entries, partial, dead, pieces = self.entries, self.partial, self.dead, self.pieces
        paged_out_ranges, self.paged_out_ranges = self.paged_out_ranges, []
        self.entries, self.partial, self.dead, self.pieces = {}, {}, set(), None
        self.front = self.records
        if self.left:
            self.settled(self.left)
        return chain(
            release(entries, entries.popitem),
            release(partial, partial.popitem),
            release(dead, dead.pop),
            release(paged_out_ranges, paged_out_ranges.pop),
            () if pieces is None else release(pieces, pieces.popitem),
        )


@dataclass(slots=True)
class PagedOutLocation:
    """Where a paged-out range is: ordinals `low` to `high - 1` of a part, and its place among the
    ranges of that."""

    part: SegmentPart
    low: int
    high: int
    at: int


class SettledSet:
    """How much of an entry is still to be kept: all but the positions before `front` and those
    flagged."""

    __slots__ = ("flags", "front", "left", "ordinal", "part")

    def __init__(self, part: SegmentPart, ordinal: int, count: int) -> None:
        self.part = part
        self.ordinal = ordinal
        self.left = count
        self.front = 0
        self.flags: bytearray | None = None

    def settle(self, entry: QueueEntry, low: int, high: int) -> None:
        """Positions `low` to `high - 1`, which were not settled before, are done with."""
        count = high - low
        self.mark(low, high, entry.count)
        part = self.part
        if not self.left:
            part.died(self.ordinal)
        part.settled(count, self.ordinal)

    def mark(self, low: int, high: int, total: int = 0) -> None:
        self.left -= high - low
        flags = self.flags
        if low == self.front:
            self.front = high
            if flags is not None:
                while self.front < len(flags) and flags[self.front]:
                    self.front += 1
            return
        if flags is None:
            flags = self.flags = bytearray(total or self.left + (high - low) + self.front)
        flags[low:high] = b"\x01" * (high - low)

    def ranges(
        self, entry: QueueEntry, *, redelivered: bool, low: int = 0, high: int | None = None
    ) -> Iterator[MessageRange]:
        """What is left of the entry, or of its positions `low` to `high - 1`."""
        flags, at = self.flags, max(low, self.front)
        end = entry.count if high is None else min(high, entry.count)
        if flags is None:
            if at < end:
                yield MessageRange(entry, at, end, redelivered)
            return
        while at < end:
            at = flags.find(0, at, end)
            if at < 0:
                return
            stop = flags.find(1, at, end)
            stop = end if stop < 0 else stop
            yield MessageRange(entry, at, stop, redelivered)
            at = stop

    def set_flags(self, flags: bytearray) -> None:
        """Takes over what was settled, a byte for each position."""
        front = flags.find(0)
        self.front = len(flags) if front < 0 else front
        self.flags = flags
        self.left = flags.count(0)

    def settled_bits(self, low: int, high: int) -> bytes:
        """Which of the positions `low` to `high - 1` are settled."""
        flags = bytearray(high - low) if self.flags is None else self.flags[low:high]
        done = min(max(0, self.front - low), high - low)
        flags[:done] = b"\x01" * done
        return packed(flags)

    def left_between(self, low: int, high: int) -> int:
        """How many of the positions `low` to `high - 1` are still to be kept."""
        low = max(low, self.front)
        if low >= high:
            return 0
        return high - low if self.flags is None else self.flags.count(0, low, high)


class Fragment:
    """Positions `low` to `high - 1` of an entry are a record of their own; `left` of them are to be
    kept."""

    __slots__ = ("high", "left", "low", "ordinal", "part")

    def __init__(self, low: int, high: int, left: int, part: SegmentPart, ordinal: int) -> None:
        self.low = low
        self.high = high
        self.left = left
        self.part = part
        self.ordinal = ordinal

    def settled(self, count: int) -> None:
        """So many less of them are to be kept."""
        self.left -= count
        if not self.left:
            self.part.died(self.ordinal)
        self.part.settled(count, self.ordinal)


class Snapshot:
    """What a part looked like, taken down in slices: of the records below ordinal `taken`.

    What is settled of these meanwhile is counted, so that the number of messages that are left
    can be told as it was in the snapshot.
    """

    __slots__ = ("dead", "front", "partial", "settled_since", "taken")

    def __init__(self, front: int) -> None:
        self.front = self.taken = front
        self.settled_since = 0
        self.dead = array("I")
        self.partial: list[tuple[int, bytes]] = []

    def take(self, part: SegmentPart, count: int) -> None:
        """Takes down so many records more."""
        end = min(self.taken + count, part.records)
        for ordinal in range(self.taken, end):
            if part.is_dead(ordinal):
                self.dead.append(ordinal)
            elif (bits := part.settled_of(ordinal)) is not None:
                self.partial.append((ordinal, bits))
        self.taken = end


_DIGITS = bytes.maketrans(b"\x00\x01", b"01")
_FLAGS = bytes.maketrans(b"01", b"\x00\x01")


def packed(flags: bytearray) -> bytes:
    """Bytes of 0 and 1 as bits, the first one lowest."""
    size = (len(flags) + 7) // 8
    return int(flags.translate(_DIGITS)[::-1] or b"0", 2).to_bytes(size, "little")


def unpacked(bits: bytes, count: int) -> bytearray:
    """The opposite of `packed`."""
    digits = format(int.from_bytes(bits, "little"), f"0{count}b")[::-1]
    return bytearray(digits.encode().translate(_FLAGS))


def pairs(ranges: array[int] | None) -> Iterator[tuple[int, int]]:
    if ranges is not None:
        yield from zip(ranges[0::2], ranges[1::2], strict=True)


def positions(entry: QueueEntry, first: int, last: int) -> tuple[int, int]:
    """The positions of the entry's messages numbered `first` to `last`, as a half-open interval."""
    low, high = first - entry.batch.sequence, last - entry.batch.sequence
    selection: Sequence[int] | None = entry.selection
    if selection is None:
        return max(0, low), min(entry.count, high + 1)
    return bisect_left(selection, low), bisect_right(selection, high)


class Segment:
    """One file: who has how much in it. `left` messages of `total` are to be kept.

    `unclean` if it was written by a process that did not stop in order: what its queues' consumers
    may have got comes back redelivered. `is_moved` if it holds what was left of others: then
    messages of a queue in it may have neighbours that are elsewhere. `is_fenced` if a start could
    not read all of it: it is never removed, for what it holds is not known. `keeps_indexes` if the
    ordinals of its parts are those of indexes that stay in memory and in checkpoints, not of one
    in its file.
    """

    __slots__ = (
        "end", "is_fenced", "is_moved", "keeps_indexes", "left", "number", "parts", "sealed",
        "total", "unclean",
    )  # fmt: skip

    def __init__(self, number: int) -> None:
        self.number = number
        self.end = 0
        self.parts: dict[int, SegmentPart] = {}
        self.left = 0
        self.total = 0
        self.sealed = False
        self.unclean = False
        self.is_moved = False
        self.is_fenced = False
        self.keeps_indexes = False

    @property
    def is_dead(self) -> bool:
        """Whether nothing in it is to be kept."""
        return not self.left and not self.is_fenced

    @property
    def name(self) -> str:
        return segment_name(self.number)

    def part(self, queue_id: int) -> SegmentPart:
        part = self.parts.get(queue_id)
        if part is None:
            part = self.parts[queue_id] = SegmentPart(self, queue_id)
        return part

    def grew(self, count: int) -> None:
        self.left += count
        self.total += count


def segment_name(number: int) -> str:
    return f"{number:012d}.log"
