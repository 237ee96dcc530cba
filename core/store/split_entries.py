"""Runs whose records were compacted: each piece of one has a record of its own.

Compaction copies what is left of a record, in pieces of neighbours. An entry in memory goes on as
it is. What of it is settled stays in one place, and its pieces say which record holds which of its
positions. A piece that is compacted again is pointed to its new record, or exchanged for smaller
ones: there is never a piece of a piece.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from ..message.batch import Batch, FramedBatch, QueueEntry, ScatteredBatch, StridedBatch
from .segment import Fragment, SegmentPart, SettledSet

Place = tuple[int, int, int]
"""Segment, offset, size."""


class SplitSettledSet(SettledSet):
    """What is to be kept of an entry that several records hold; `part` is that of the first."""

    __slots__ = ("_pieces",)

    def __init__(self, before: SettledSet, pieces: list[Fragment]) -> None:
        super().__init__(pieces[0].part, pieces[0].ordinal, before.left)
        self.front, self.flags = before.front, before.flags
        self._pieces = pieces

    def settle(self, entry: QueueEntry, low: int, high: int) -> None:
        """Positions `low` to `high - 1`, which were not settled before, are done with."""
        self.mark(low, high, entry.count)
        pieces = self._pieces
        at = bisect_right(pieces, low, key=_low) - 1
        while at < len(pieces) and pieces[at].low < high:
            piece = pieces[at]
            piece.settled(min(high, piece.high) - max(low, piece.low))
            at += 1

    def exchange(self, piece: Fragment, pieces: list[Fragment]) -> None:
        """Puts smaller pieces in the place of one."""
        at = bisect_left(self._pieces, piece.low, key=_low)
        self._pieces[at : at + 1] = pieces

    def whereabouts(self) -> tuple[SegmentPart, int, int] | None:
        """The part and the ordinals, first and behind the last, if they are neighbours."""
        part, low = self._pieces[0].part, self._pieces[0].ordinal
        for ordinal, piece in enumerate(self._pieces, low):
            if piece.part is not part or piece.ordinal != ordinal:
                return None
        return part, low, low + len(self._pieces)


def whereabouts(entry: QueueEntry) -> tuple[SegmentPart, int, int] | None:
    """Where all of an entry is kept, as neighbouring records of one part (the ordinals of the first
    and behind the last); None if something of it is settled, or it is in several places."""
    kept = entry.settled_set
    if not isinstance(kept, SettledSet) or kept.left < entry.count:
        return None
    if isinstance(kept, SplitSettledSet):
        return kept.whereabouts()
    return kept.part, kept.ordinal, kept.ordinal + 1


def _low(piece: Fragment) -> int:
    return piece.low


class Places:
    """Where the messages of a batch are whose record was compacted: by the index of its first
    message, the place of each new record."""

    __slots__ = ("_records",)

    def __init__(self, records: dict[int, Place]) -> None:
        self._records = records

    def snapshot(self) -> list[tuple[int, Place]]:
        """First index and place of each record, in order."""
        return sorted(self._records.items())

    def exchange(self, segment: int, first: int, records: Iterable[tuple[int, Place]]) -> Places:
        """Says where the messages are of the record in that segment that begins with index
        `first`. The answer takes this one's place: whoever is reading sees that it has changed.
        """
        before = self._records.get(first)
        if before is not None and before[0] == segment:
            del self._records[first]
        self._records.update(records)
        return Places(self._records)

    def forget(self, segments: set[int]) -> None:
        """These were compacted, and of what the batch still has there nothing was left."""
        for first, where in list(self._records.items()):
            if where[0] in segments:
                del self._records[first]


def places_of(batch: Batch) -> Places:
    """Of a batch that is in the log."""
    place = batch.location
    if isinstance(place, Places):
        return place
    assert isinstance(place, tuple)
    return Places({0: place})


def is_in_log(place: object) -> bool:
    """Whether a batch is read from segments, and from nowhere else."""
    return isinstance(place, Places) or (isinstance(place, tuple) and type(place[0]) is int)


def reassemble(batch: Batch, pieces: list[tuple[int, Batch]]) -> Batch:
    """The batch with what is left of it; what was not copied is not looked at any more.

    `pieces` are first indices and the batches that were read for them.
    """
    if len(pieces) == 1 and pieces[0][1].count == batch.count:
        return pieces[0][1]
    if isinstance(batch, StridedBatch):
        return _strided(batch, pieces)
    offsets = [array("I", bytes(4 * batch.count)) for _ in range(3)]
    data = bytearray()
    for first, read in pieces:
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


def _strided(batch: StridedBatch, pieces: list[tuple[int, Batch]]) -> Batch:
    stride = batch.stride
    data = bytearray(stride * batch.count)
    for first, read in pieces:
        assert isinstance(read, FramedBatch)
        for index in range(read.count):
            start, _, end = read.bounds(index)
            at = (first + index) * stride
            data[at : at + stride] = read.data[start:end]
    return StridedBatch(
        bytes(data), batch.sequence, batch.count, batch.attributes, batch.arrived_ms,
        (0, stride, batch.content_at, batch.body_at),
    )  # fmt: skip


def piece_of(batch: Batch, first: int, count: int) -> Batch:
    """Neighbouring messages of a batch as one of their own; nothing is copied."""
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
