"""Segments: the files of the log, with the number of unsettled messages in each."""

from __future__ import annotations

from .loaded_batches import LoadedBatches
from .segment_part import SegmentPart


class Segment:
    """One file of the log, with a part for each queue; `unsettled` of its `total` messages are not
    settled.

    `unclean`: it was written by a process that did not stop in order, so messages in it that
    consumers may have got are redelivered. `is_moved`: compaction wrote it, so other segments may
    have messages of a queue that are between those in it. `is_fenced`: a start could not read all
    of it, so it is never cut, compacted or removed. `keeps_indexes`: the indexes that its ordinals
    refer to are kept in memory and in checkpoints, not in its file.
    """

    __slots__ = (
        "end",
        "is_fenced",
        "is_moved",
        "keeps_indexes",
        "loaded",
        "number",
        "parts",
        "sealed",
        "total",
        "unclean",
        "unsettled",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.end = 0
        self.parts: dict[int, SegmentPart] = {}
        self.loaded = LoadedBatches()
        self.unsettled = 0
        self.total = 0
        self.sealed = False
        self.unclean = False
        self.is_moved = False
        self.is_fenced = False
        self.keeps_indexes = False

    @property
    def is_dead(self) -> bool:
        """Whether each message in it is settled, so that its file can be removed."""
        return not self.unsettled and not self.is_fenced

    @property
    def name(self) -> str:
        return segment_name(self.number)

    def part(self, queue_id: int) -> SegmentPart:
        part = self.parts.get(queue_id)
        if part is None:
            part = self.parts[queue_id] = SegmentPart(self, queue_id)
        return part

    def grew(self, count: int) -> None:
        self.unsettled += count
        self.total += count


def segment_name(number: int) -> str:
    return f"{number:012d}.log"
