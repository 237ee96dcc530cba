"""Runs whose records were compacted: each piece of one has a record of its own.

Compaction copies what is left of a record, in pieces of neighbours. A run in memory goes on as it
is. What of it is settled stays in one place, and its pieces say which record holds which of its
positions. A piece that is compacted again is pointed to its new record, or exchanged for smaller
ones: there is never a piece of a piece.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from ..block import Block, FrameBlock, Run, ScatteredBlock, StridedBlock
from .part import Kept, Part, Piece

Place = tuple[int, int, int]
"""Segment, offset, size."""


class KeptInPieces(Kept):
    """What is to be kept of a run that several records hold; `part` is that of the first."""

    __slots__ = ("_pieces",)

    def __init__(self, before: Kept, pieces: list[Piece]) -> None:
        super().__init__(pieces[0].part, pieces[0].ordinal, before.left)
        self.front, self.flags = before.front, before.flags
        self._pieces = pieces

    def settle(self, run: Run, low: int, high: int) -> None:
        """Positions `low` to `high - 1`, which were not settled before, are done with."""
        self.mark(low, high, run.count)
        pieces = self._pieces
        at = bisect_right(pieces, low, key=_low) - 1
        while at < len(pieces) and pieces[at].low < high:
            piece = pieces[at]
            piece.settled(min(high, piece.high) - max(low, piece.low))
            at += 1

    def exchange(self, piece: Piece, pieces: list[Piece]) -> None:
        """Puts smaller pieces in the place of one."""
        at = bisect_left(self._pieces, piece.low, key=_low)
        self._pieces[at : at + 1] = pieces

    def whereabouts(self) -> tuple[Part, int, int] | None:
        """The part and the ordinals, first and behind the last, if they are neighbours."""
        part, low = self._pieces[0].part, self._pieces[0].ordinal
        for ordinal, piece in enumerate(self._pieces, low):
            if piece.part is not part or piece.ordinal != ordinal:
                return None
        return part, low, low + len(self._pieces)


def whereabouts(run: Run) -> tuple[Part, int, int] | None:
    """Where all of a run is kept, as neighbouring records of one part (the ordinals of the first
    and behind the last); None if something of it is settled, or it is in several places."""
    kept = run.kept
    if not isinstance(kept, Kept) or kept.left < run.count:
        return None
    if isinstance(kept, KeptInPieces):
        return kept.whereabouts()
    return kept.part, kept.ordinal, kept.ordinal + 1


def _low(piece: Piece) -> int:
    return piece.low


class Places:
    """Where the messages of a block are whose record was compacted: by the index of its first
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
        """These were compacted, and of what the block still has there nothing was left."""
        for first, where in list(self._records.items()):
            if where[0] in segments:
                del self._records[first]


def places_of(block: Block) -> Places:
    """Of a block that is in the log."""
    place = block.place
    if isinstance(place, Places):
        return place
    assert isinstance(place, tuple)
    return Places({0: place})


def is_in_log(place: object) -> bool:
    """Whether a block is read from segments, and from nowhere else."""
    return isinstance(place, Places) or (isinstance(place, tuple) and type(place[0]) is int)


def reassemble(block: Block, pieces: list[tuple[int, Block]]) -> Block:
    """The block with what is left of it; what was not copied is not looked at any more.

    `pieces` are first indices and the blocks that were read for them.
    """
    if len(pieces) == 1 and pieces[0][1].count == block.count:
        return pieces[0][1]
    if isinstance(block, StridedBlock):
        return _strided(block, pieces)
    offsets = [array("I", bytes(4 * block.count)) for _ in range(3)]
    data = bytearray()
    for first, read in pieces:
        assert isinstance(read, FrameBlock)
        for index in range(read.count):
            bounds = read.bounds(index)
            for column, offset in zip(offsets, bounds, strict=True):
                column[first + index] = offset - bounds[0] + len(data)
            data += read.data[bounds[0] : bounds[2]]
    starts, contents, ends = offsets
    return ScatteredBlock(
        bytes(data), block.sequence, block.traits, block.arrived_ms, starts, contents, ends
    )


def _strided(block: StridedBlock, pieces: list[tuple[int, Block]]) -> Block:
    stride = block.stride
    data = bytearray(stride * block.count)
    for first, read in pieces:
        assert isinstance(read, FrameBlock)
        for index in range(read.count):
            start, _, end = read.bounds(index)
            at = (first + index) * stride
            data[at : at + stride] = read.data[start:end]
    return StridedBlock(
        bytes(data), block.sequence, block.count, block.traits, block.arrived_ms,
        (0, stride, block.content_at, block.body_at),
    )  # fmt: skip


def piece_of(block: Block, first: int, count: int) -> Block:
    """Neighbouring messages of a block as one of their own; nothing is copied."""
    sequence = block.sequence + first
    if isinstance(block, StridedBlock):
        layout = (block.first + first * block.stride, block.stride, block.content_at, block.body_at)
        return StridedBlock(block.data, sequence, count, block.traits, block.arrived_ms, layout)
    if isinstance(block, ScatteredBlock):
        chosen = slice(first, first + count)
        return ScatteredBlock(
            block.data, sequence, block.traits, block.arrived_ms,
            block.starts[chosen], block.contents[chosen], block.ends[chosen],
        )  # fmt: skip
    return block
