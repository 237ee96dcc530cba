"""Runs whose records were moved: each piece of one has its own place now.

A move copies what is left of a record, in pieces of neighbours. A run in memory goes on as it is;
what it keeps is settled piece by piece.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass

from ..block import Block, FrameBlock, Run, ScatteredBlock, StridedBlock
from .part import Kept, Part

Place = tuple[int, int, int]
"""Segment, offset, size."""


@dataclass(frozen=True, slots=True)
class MovedPiece:
    """A part of a run: `positions` of it are the messages of `run`, which is kept by itself."""

    positions: array[int]
    run: Run


class MovedKept:
    """What is kept of a run in pieces."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: list[MovedPiece]) -> None:
        self.pieces = pieces

    def settle(self, low: int, high: int) -> None:
        """Positions `low` to `high - 1` of the run, which were not settled before, are done."""
        for piece in self.pieces:
            start = bisect_left(piece.positions, low)
            stop = bisect_left(piece.positions, high)
            if start < stop:
                settle_run(piece.run, start, stop)


def settle_run(run: Run, low: int, high: int) -> None:
    """Positions `low` to `high - 1` of a run are done with, wherever they are kept."""
    kept = run.kept
    if isinstance(kept, MovedKept):
        kept.settle(low, high)
    elif isinstance(kept, Kept):
        kept.settle(run, low, high)


def whereabouts(run: Run) -> tuple[Part, int, int] | None:
    """Where all of a run is kept, as neighbouring records of one part (the ordinals of the first
    and behind the last); None if something of it is settled, or it is in several places."""
    kept = run.kept
    if isinstance(kept, Kept):
        return (kept.part, kept.ordinal, kept.ordinal + 1) if kept.left == run.count else None
    if not isinstance(kept, MovedKept):
        return None
    if sum(len(piece.positions) for piece in kept.pieces) < run.count:
        return None
    return _neighbours([whereabouts(piece.run) for piece in kept.pieces])


def _neighbours(places: list[tuple[Part, int, int] | None]) -> tuple[Part, int, int] | None:
    found = places[0] if places else None
    for place in places[1:]:
        if found is None or place is None or place[:2] != (found[0], found[2]):
            return None
        found = found[0], found[1], place[2]
    return found


@dataclass(frozen=True, slots=True)
class MovedPlace:
    """Where a block's messages are now: first index and place of each piece."""

    pieces: list[tuple[int, Place]]


def is_in_log(place: object) -> bool:
    """Whether a block is read from segments, and from nowhere else."""
    return isinstance(place, MovedPlace) or (isinstance(place, tuple) and type(place[0]) is int)


def place_again(
    block: Block, left: set[int], now: list[tuple[int, int, Place]]
) -> MovedPlace | Place:
    """Where a block is when its records in the segments `left` have been moved: first index,
    message count and place of each new one."""
    place = block.place
    known: list[tuple[int, Place]] = []
    if isinstance(place, MovedPlace):
        known = place.pieces
    elif isinstance(place, tuple):
        known = [(0, place)]
    if len(now) == 1 and now[0][:2] == (0, block.count):
        return now[0][2]
    kept = [held for held in known if held[1][0] not in left]
    added = [(first, where) for first, _, where in now if (first, where) not in kept]
    return MovedPlace(sorted(kept + added))


def reassemble(block: Block, pieces: list[tuple[int, Block]]) -> Block:
    """The block with what is left of it; what was not moved is not looked at any more.

    `pieces` are first indices and the blocks that were read for them.
    """
    if len(pieces) == 1 and not isinstance(block, FrameBlock):
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
