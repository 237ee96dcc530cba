"""Segment parts: the records that one segment has for one queue.

Records are usually settled from the front; the ordinals of those settled out of order are noted
until the front has reached them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from ..message.queue_entry import PagedOut, QueueEntry, RangeLocation
from ..message.settled_set import unpacked
from ..slices import release
from .record_index import IndexSummary, RecordIndex
from .settled_set import Fragment, RecordSettledSet, settled_set_of

if TYPE_CHECKING:
    from .segment import Segment


class SegmentPart:
    """One queue's records in one segment, and which of them are settled.

    `unsettled` counts the messages that are not settled. Records are named by their ordinal in the
    part; all before `front` are dead, which means that each of their messages is settled.

    `dead` has the ordinals of dead records behind `front`. `partial` has, for records that are not
    in memory as queue entries, which positions are settled, a bit each. `entries` are the entries
    in memory by ordinal; `paged_out_ranges` the ranges that are not in memory. `fragments` say
    which positions of its entry a record has, where these are not all.
    """

    __slots__ = (
        "dead",
        "entries",
        "first",
        "fragments",
        "front",
        "index",
        "last",
        "next_offset",
        "paged_out_ranges",
        "partial",
        "queue_id",
        "records",
        "segment",
        "snapshot",
        "special",
        "unsettled",
    )

    def __init__(self, segment: Segment, queue_id: int) -> None:
        self.segment = segment
        self.queue_id = queue_id
        self.records = 0
        self.unsettled = 0
        self.front = 0
        self.first = 0
        self.last = 0
        self.special = 0
        self.next_offset = 0
        """The offset of the queue's next message, for a stream."""
        self.dead: set[int] = set()
        self.partial: dict[int, bytes] = {}
        self.entries: dict[int, QueueEntry] = {}
        self.fragments: dict[int, Fragment] | None = None
        self.paged_out_ranges: list[PagedOut] = []
        self.index: RecordIndex | None = None
        self.snapshot: Snapshot | None = None
        """The snapshot that a checkpoint takes of it, in slices."""

    @property
    def summary(self) -> IndexSummary:
        return IndexSummary(self.records, self.first, self.last)

    def add(self, first: int, last: int, count: int, offset: int, size: int, special: int) -> int:
        """Adds a record; returns its ordinal."""
        if self.index is None:
            self.index = RecordIndex()
            self.first = first
        self.index.add(first, last, count, offset, size, special=special)
        self.last = last
        self.special |= special
        self.unsettled += count
        self.segment.grew(count)
        self.records += 1
        return self.records - 1

    def number(self, first: int) -> None:
        """Sets the stream offset of the last record's first message."""
        if self.index is not None:
            self.next_offset = first + self.index[len(self.index) - 1].count

    def attach(self, ordinal: int, entry: QueueEntry) -> RecordSettledSet:
        """Notes that the record is in memory as this entry; returns the entry's settled set."""
        self.entries[ordinal] = entry
        settled_set = RecordSettledSet(self, ordinal, entry.count)
        entry.settled_set = settled_set
        bits = self.partial.pop(ordinal, None)
        if bits is not None:
            settled_set.set_flags(unpacked(bits, entry.count))
        return settled_set

    def detach(self, ordinal: int) -> None:
        """Notes that the record has left memory; it stays in the log."""
        del self.entries[ordinal]
        if self.fragments is not None:
            self.fragments.pop(ordinal, None)

    def add_paged_out(self, paged_out: PagedOut, low: int, high: int) -> None:
        """Adds a paged-out range of the records at ordinals `low` to `high - 1`."""
        paged_out.location = PagedOutLocation(self, low, high, len(self.paged_out_ranges))
        self.paged_out_ranges.append(paged_out)

    def remove_paged_out(self, paged_out: PagedOut) -> None:
        """Removes a range that has ended or is moved to another part."""
        location, last = location_of(paged_out), self.paged_out_ranges.pop()
        if last is not paged_out:
            self.paged_out_ranges[location.at] = last
            location_of(last).at = location.at

    def has_paged_out(self, paged_out: PagedOut) -> bool:
        """Whether a range is one of this part's: it may have been discarded or moved since."""
        location = paged_out.location
        return (
            isinstance(location, PagedOutLocation)
            and location.part is self
            and location.at < len(self.paged_out_ranges)
            and self.paged_out_ranges[location.at] is paged_out
        )

    @property
    def dead_count(self) -> int:
        """The number of dead records."""
        return self.front + len(self.dead)

    def is_dead(self, ordinal: int) -> bool:
        return ordinal < self.front or ordinal in self.dead

    def count_settled(self, count: int, ordinal: int = 0) -> None:
        """Subtracts settled messages of a record; removes a sealed part without unsettled ones."""
        if self.snapshot is not None and ordinal < self.snapshot.taken:
            self.snapshot.settled_since += count
        self.unsettled -= count
        segment = self.segment
        segment.unsettled -= count
        if not self.unsettled and segment.sealed:
            segment.parts.pop(self.queue_id, None)

    def transfer_to(self, other: SegmentPart, count: int) -> None:
        """Moves `count` unsettled messages to the other part's counts."""
        self.unsettled -= count
        self.segment.unsettled -= count
        other.unsettled += count
        other.segment.grew(count)

    def mark_dead(self, ordinal: int) -> None:
        """Notes that each message of a record is settled."""
        self.entries.pop(ordinal, None)
        self.partial.pop(ordinal, None)
        if self.fragments is not None:
            self.fragments.pop(ordinal, None)
        if ordinal != self.front:
            self.dead.add(ordinal)
            return
        self.front += 1
        while self.dead and self.front in self.dead:
            self.dead.remove(self.front)
            self.front += 1

    def settled_bits(self) -> Iterator[tuple[int, bytes]]:
        """Yields the ordinals of partly settled records, with their settled positions as bits."""
        yield from self.partial.items()
        for ordinal in list(self.entries):
            bits = self.settled_of(ordinal)
            if bits is not None:
                yield ordinal, bits

    def settled_of(self, ordinal: int) -> bytes | None:
        """Returns the settled positions of a record as bits; None if none is settled."""
        entry = self.entries.get(ordinal)
        if entry is None:
            return self.partial.get(ordinal)
        settled_set = settled_set_of(entry)
        fragment = None if self.fragments is None else self.fragments.get(ordinal)
        low, high, unsettled = (
            (0, entry.count, settled_set.unsettled)
            if fragment is None
            else (fragment.low, fragment.high, fragment.unsettled)
        )
        return settled_set.bits(low, high) if unsettled < high - low else None

    @property
    def has_gaps(self) -> bool:
        """Whether messages are settled that are behind others which are not."""
        return bool(self.dead or self.partial)

    def unsettled_of(self, ordinal: int, count: int) -> int:
        """Returns how many of a record's `count` messages are not settled."""
        if self.is_dead(ordinal):
            return 0
        bits = self.settled_of(ordinal)
        return count if bits is None else count - int.from_bytes(bits, "big").bit_count()

    def revive(self, ordinal: int) -> None:
        """Makes all messages of a record unsettled again."""
        self.partial.pop(ordinal, None)
        self.dead.discard(ordinal)
        if ordinal < self.front:
            self.dead.update(range(ordinal + 1, self.front))
            self.front = ordinal

    def clear(self) -> Iterator[None]:
        """Settles all of it at once; the returned steps free its memory."""
        self.snapshot = None
        entries, partial, dead, fragments = self.entries, self.partial, self.dead, self.fragments
        paged_out_ranges, self.paged_out_ranges = self.paged_out_ranges, []
        self.entries, self.partial, self.dead, self.fragments = {}, {}, set(), None
        self.front = self.records
        if self.unsettled:
            self.count_settled(self.unsettled)
        return chain(
            release(entries, entries.popitem),
            release(partial, partial.popitem),
            release(dead, dead.pop),
            release(paged_out_ranges, paged_out_ranges.pop),
            () if fragments is None else release(fragments, fragments.popitem),
        )


class PagedOutLocation(RangeLocation):
    """The location of a paged-out range: ordinals `low` to `high - 1` of a part, and its index in
    the part's `paged_out_ranges`."""

    __slots__ = ("at", "high", "low", "part")

    def __init__(self, part: SegmentPart, low: int, high: int, at: int) -> None:
        self.part = part
        self.low = low
        self.high = high
        self.at = at


def location_of(paged_out: PagedOut) -> PagedOutLocation:
    """Returns the location of a range that this store has paged out."""
    location = paged_out.location
    assert isinstance(location, PagedOutLocation)
    return location


class Snapshot:
    """A consistent copy of a part's settlements, taken in slices, up to ordinal `taken`.

    Messages of copied records that are settled before the last slice are counted in
    `settled_since`, so that the number of unsettled messages fits the copy.
    """

    __slots__ = ("dead", "front", "partial", "settled_since", "taken")

    def __init__(self, front: int) -> None:
        self.front = self.taken = front
        self.settled_since = 0
        self.dead = array("I")
        self.partial: list[tuple[int, bytes]] = []

    def take(self, part: SegmentPart, count: int) -> None:
        """Copies the next `count` records."""
        end = min(self.taken + count, part.records)
        for ordinal in range(self.taken, end):
            if part.is_dead(ordinal):
                self.dead.append(ordinal)
            elif (bits := part.settled_of(ordinal)) is not None:
                self.partial.append((ordinal, bits))
        self.taken = end
