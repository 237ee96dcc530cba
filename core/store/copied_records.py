"""The records that compaction copies, and their new locations.

A survey notes the survivors of each part, and the copier writes them to a new file. A few numbers
about each new record stay in memory, in arrays, until the records have been relocated.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from ..message.queue_entry import QueueEntry
from .location import RecordLocation
from .record_index import ENTRY, RecordIndex
from .segment import Segment
from .segment_part import SegmentPart


class Survivors:
    """The unsettled records of a part at the time of a survey: their ordinals, and the settled
    positions, as bits, of those that were partly settled."""

    __slots__ = ("dead_count", "ordinals", "queue_id", "segment", "settled", "summary", "unclean")

    def __init__(self, part: SegmentPart) -> None:
        self.queue_id = part.queue_id
        self.segment = part.segment.number
        self.summary = part.summary
        self.unclean = part.segment.unclean
        self.dead_count = part.dead_count
        self.ordinals = array("I")
        self.settled: dict[int, bytes] = {}

    def add(self, ordinal: int, settled: bytes | None) -> None:
        self.ordinals.append(ordinal)
        if settled is not None:
            self.settled[ordinal] = settled


class CopySource:
    """The new locations of an old part's records.

    Record `ordinals[i]` became the ordinals from `starts[i]` to `stops[i] - 1` of the new part. It
    began with message `bases[i]`; its unsettled messages, for all queues, are in the new file's
    records from `first_records[i]` to `last_records[i] - 1`. `dead_count` records of the old part
    were dead when the survey began.
    """

    def __init__(self, survivors: Survivors) -> None:
        self.dead_count = survivors.dead_count
        self.ordinals = array("I")
        self.starts = array("I")
        self.stops = array("I")
        self.bases = array("Q")
        self.first_records = array("I")
        self.last_records = array("I")

    def at(self, ordinal: int) -> int:
        """Returns the position in the arrays of the first record from this ordinal on."""
        return bisect_left(self.ordinals, ordinal)

    def sort(self, rank: Sequence[int]) -> None:
        """Sorts by old ordinals; `rank[i]` is what the new ordinal `i` becomes."""
        for at, start in enumerate(self.starts):
            # The new records of one old record stay adjacent: no other has messages between them.
            self.stops[at] += rank[start] - start
            self.starts[at] = rank[start]
        order = sorted(range(len(self.ordinals)), key=self.ordinals.__getitem__)
        for name in ("ordinals", "starts", "stops", "bases", "first_records", "last_records"):
            setattr(self, name, _permuted(getattr(self, name), order))


class QueueCopy:
    """The new records of one queue: the new part, and for each of its ordinals the positions in the
    old record (`lows` to `highs - 1`). `sources` has the old parts by segment."""

    def __init__(self, part: SegmentPart) -> None:
        self.part = part
        self.index = RecordIndex()
        self.lows = array("I")
        self.highs = array("I")
        self.sources: dict[int, CopySource] = {}

    def add(self, entry: QueueEntry, where: RecordLocation, interval: tuple[int, int]) -> None:
        low, high = interval
        special = entry.batch.attributes.special
        first, last = entry.sequence(0), entry.sequence(entry.count - 1)
        self.index.add(first, last, high - low, where.offset, where.size, special=special)
        self.part.special |= special
        self.lows.append(low)
        self.highs.append(high)

    def sort(self) -> None:
        """Sorts the new records by their messages: old parts may overlap, and a record of several
        queues is written among those of the first queue."""
        firsts = self.index.numbers[0::ENTRY]
        order = sorted(range(len(firsts)), key=firsts.__getitem__)
        if all(old == at for at, old in enumerate(order)):
            return
        self.index = RecordIndex(_permuted(self.index.numbers, order, ENTRY))
        self.lows, self.highs = _permuted(self.lows, order), _permuted(self.highs, order)
        rank = array("I", bytes(4 * len(order)))
        for at, old in enumerate(order):
            rank[old] = at
        self.part.partial = {rank[at]: bits for at, bits in self.part.partial.items()}
        for source in self.sources.values():
            source.sort(rank)


def _permuted(numbers: array[int], order: list[int], width: int = 1) -> array[int]:
    found = array(numbers.typecode)
    for at in order:
        found.extend(numbers[at * width : (at + 1) * width])
    return found


class CompactedSegment:
    """The new file: `segment`, with a part for each queue, whose messages are not counted yet.

    `victims` are the segments that were copied from. `firsts`, `offsets` and `sizes`
    describe the new records in the order of writing: the index in the old record of the first
    message, and the location.
    """

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.victims: set[int] = set()
        self.queues: dict[int, QueueCopy] = {}
        self.firsts = array("I")
        self.offsets = array("Q")
        self.sizes = array("I")

    def locations(self, source: CopySource, at: int) -> Iterator[tuple[int, RecordLocation]]:
        """Yields the new records of an old one: the index of the first message in it, and the
        location."""
        for record in range(source.first_records[at], source.last_records[at]):
            where = RecordLocation(self.segment.number, self.offsets[record], self.sizes[record])
            yield self.firsts[record], where
