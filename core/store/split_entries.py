"""Queue entries that compaction has split: each fragment is a record of its own.

Compaction copies the unsettled messages of a record, into a new record for each range of
neighbouring ones. A queue entry in memory keeps one settled set; its fragments say which record has
which of its positions. A fragment that is compacted again is pointed to its new record, or replaced
by smaller ones: there are no fragments of fragments.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from ..message.batch import Batch, BatchLocation
from ..message.framed_batch import FramedBatch, ScatteredBatch, StridedBatch
from ..message.queue_entry import QueueEntry
from .location import RecordLocation
from .segment_part import SegmentPart
from .settled_set import Fragment, RecordSettledSet, settled_set_of


class SplitSettledSet(RecordSettledSet):
    """The settled set of an entry that is in several records; `part` is that of the first."""

    __slots__ = ("_fragments",)

    def __init__(self, before: RecordSettledSet, fragments: list[Fragment]) -> None:
        super().__init__(fragments[0].part, fragments[0].ordinal, before.count)
        self.unsettled = before.unsettled
        self.front, self.flags = before.front, before.flags
        self._fragments = fragments

    def settle(self, low: int, high: int) -> None:
        """Settles positions `low` to `high - 1`, none of which was settled before."""
        self.mark(low, high)
        fragments = self._fragments
        at = bisect_right(fragments, low, key=_low) - 1
        while at < len(fragments) and fragments[at].low < high:
            fragment = fragments[at]
            fragment.count_settled(min(high, fragment.high) - max(low, fragment.low))
            at += 1

    def exchange(self, fragment: Fragment, fragments: list[Fragment]) -> None:
        """Replaces a fragment by smaller ones."""
        at = bisect_left(self._fragments, fragment.low, key=_low)
        self._fragments[at : at + 1] = fragments

    def records(self) -> Iterator[tuple[SegmentPart, int, int]]:
        """Yields the record of each fragment, as `records_of`."""
        for fragment in self._fragments:
            yield fragment.part, fragment.ordinal, fragment.high - fragment.low

    def record_range(self) -> tuple[SegmentPart, int, int] | None:
        """Returns the part and the half-open interval of ordinals; None if the fragments are not
        adjacent."""
        part, low = self._fragments[0].part, self._fragments[0].ordinal
        for ordinal, fragment in enumerate(self._fragments, low):
            if fragment.part is not part or fragment.ordinal != ordinal:
                return None
        return part, low, low + len(self._fragments)


def record_range(entry: QueueEntry) -> tuple[SegmentPart, int, int] | None:
    """Returns the part and the half-open interval of ordinals of all of an entry; None if some of
    it is settled, or its records are not adjacent."""
    settled_set = entry.settled_set
    if not isinstance(settled_set, RecordSettledSet) or settled_set.unsettled < entry.count:
        return None
    if isinstance(settled_set, SplitSettledSet):
        return settled_set.record_range()
    return settled_set.part, settled_set.ordinal, settled_set.ordinal + 1


def records_of(entry: QueueEntry) -> Iterable[tuple[SegmentPart, int, int]]:
    """Returns the records of an entry in the log: the part, the ordinal, and how many messages."""
    settled_set = settled_set_of(entry)
    if isinstance(settled_set, SplitSettledSet):
        return settled_set.records()
    return ((settled_set.part, settled_set.ordinal, entry.count),)


def _low(fragment: Fragment) -> int:
    return fragment.low


class SplitLocations(BatchLocation):
    """The locations of a batch whose record was compacted: by the index of its first message, the
    location of each new record."""

    __slots__ = ("_records",)

    def __init__(self, records: dict[int, RecordLocation]) -> None:
        self._records = records

    @property
    def in_order(self) -> list[tuple[int, RecordLocation]]:
        """The first index and the location of each record."""
        return sorted(self._records.items(), key=_first_index)

    def snapshot(self) -> SplitLocations:
        """Returns a copy that another thread may read."""
        return SplitLocations(dict(self._records))

    def exchange(
        self, segment: int, first: int, records: Iterable[tuple[int, RecordLocation]]
    ) -> SplitLocations:
        """Replaces the record in that segment that begins with index `first`. Returns a new object,
        so that a pending read can detect the change."""
        before = self._records.get(first)
        if before is not None and before.segment == segment:
            del self._records[first]
        self._records.update(records)
        return SplitLocations(self._records)

    def forget(self, segments: set[int]) -> None:
        """Removes records in segments that were compacted: none of their messages is unsettled."""
        for first, where in list(self._records.items()):
            if where.segment in segments:
                del self._records[first]


def locations_of(batch: Batch) -> SplitLocations:
    """Returns the locations of a batch that is in the log."""
    location = batch.location
    if isinstance(location, SplitLocations):
        return location
    assert isinstance(location, RecordLocation)
    return SplitLocations({0: location})


def _first_index(record: tuple[int, RecordLocation]) -> int:
    return record[0]


def is_in_log(location: BatchLocation | None) -> bool:
    """Whether a batch is read from segments."""
    return isinstance(location, RecordLocation | SplitLocations)


def reassemble(batch: Batch, fragments: list[tuple[int, Batch]]) -> Batch:
    """Returns a batch made of its fragments; messages that were not copied are empty.

    `fragments` are first indices and the batches that were read for them.
    """
    if len(fragments) == 1 and fragments[0][1].count == batch.count:
        return fragments[0][1]
    if isinstance(batch, StridedBatch):
        return _strided(batch, fragments)
    offsets = [array("I", bytes(4 * batch.count)) for _ in range(3)]
    data = bytearray()
    for first, read in fragments:
        assert isinstance(read, FramedBatch)
        for index in range(read.count):
            bounds = read.bounds(index)
            for column, offset in zip(offsets, bounds, strict=True):
                column[first + index] = offset - bounds[0] + len(data)
            data += read.data[bounds[0] : bounds[2]]
    starts, contents, ends = offsets
    return ScatteredBatch(
        bytes(data), batch.sequence, batch.attributes, batch.arrived_ms, starts, contents, ends
    )


def _strided(batch: StridedBatch, fragments: list[tuple[int, Batch]]) -> Batch:
    stride = batch.stride
    data = bytearray(stride * batch.count)
    for first, read in fragments:
        assert isinstance(read, FramedBatch)
        for index in range(read.count):
            start, _, end = read.bounds(index)
            at = (first + index) * stride
            data[at : at + stride] = read.data[start:end]
    return StridedBatch(
        bytes(data), batch.sequence, batch.count, batch.attributes, batch.arrived_ms,
        (0, stride, batch.content_at, batch.body_at),
    )  # fmt: skip


def batch_slice(batch: Batch, first: int, count: int) -> Batch:
    """Returns adjacent messages of a batch as a batch of their own; nothing is copied."""
    sequence = batch.sequence + first
    if isinstance(batch, StridedBatch):
        layout = (batch.first + first * batch.stride, batch.stride, batch.content_at, batch.body_at)
        return StridedBatch(batch.data, sequence, count, batch.attributes, batch.arrived_ms, layout)
    if isinstance(batch, ScatteredBatch):
        chosen = slice(first, first + count)
        return ScatteredBatch(
            batch.data, sequence, batch.attributes, batch.arrived_ms,
            batch.starts[chosen], batch.contents[chosen], batch.ends[chosen],
        )  # fmt: skip
    return batch
