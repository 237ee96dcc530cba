"""Repairs damaged indexes of segments.

A checkpoint refers to records by ordinals. If ordinals in a rebuilt index are uncertain, a record
counts as settled only if all its possible ordinals are settled: serving settled messages again is
better than losing others.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right

from . import checkpoint
from .checkpoint import CheckpointState
from .damage import Damage
from .disk import FULL, Disk
from .footer import write_footer
from .reader import RecordReader
from .rebuilt import Aligned
from .record_index import RecordIndex
from .segment import Segment
from .segment_part import SegmentPart

logger = logging.getLogger(__name__)


class IndexRepair:
    """Rebuilds the indexes of segments that the checkpoint lists, and writes them."""

    def __init__(
        self, disk: Disk, reader: RecordReader, state: CheckpointState, damage: Damage
    ) -> None:
        self._disk = disk
        self._reader = reader
        self._state = state
        self._damage = damage
        self._repaired: list[Segment] = []
        self._is_revived = False

    def repair(self, segment: Segment, size_bytes: int) -> None:
        """Rebuilds the indexes of a segment if they are damaged; lost records keep their ordinals.

        This is not needed if nothing in the segment is settled. If the disk can't read it now, it
        may be readable at the next start: its own index still determines what is settled then.
        """
        if segment.keeps_indexes:
            return
        is_short = size_bytes < segment.end
        if not is_short and not any(map(_has_settled, segment.parts.values())):
            return
        if self._reader.footer(segment.number) is not None:
            return
        table = self._reader.rebuilt(segment.number)
        lost = revived = 0
        for part in segment.parts.values():
            aligned = table.aligned(part.queue_id, part.summary)
            part.index = aligned.index
            if segment.number not in self._reader.unreadable:
                lost += aligned.lost
                revived += revive(part, aligned, self._state.marks)
        if not table.is_empty and segment.number not in self._reader.unreadable:
            self._repaired.append(segment)
        self._is_revived |= revived > 0
        if lost:
            self._damage.lost[segment.number] = f"{lost} records are damaged or missing"
            logger.error(
                "%s: its index is damaged, and %d records are damaged or missing; all other data "
                "is served", segment.name, lost,
            )  # fmt: skip
        if revived:
            logger.error(
                "%s: for some queues the missing records are unknown; %d possibly settled "
                "messages are redelivered", segment.name, revived,
            )  # fmt: skip

    def write(self) -> None:
        """Writes the rebuilt indexes, which make the ordinals final, after a checkpoint with the
        revived records. Indexes of fenced segments are in each checkpoint from now on."""
        for segment in self._repaired:
            segment.keeps_indexes = segment.is_fenced
        if self._is_revived and not self._write_revived():
            return
        for segment in self._repaired:
            if segment.is_fenced:
                continue
            file = self._disk.open(segment.name)
            try:
                segment.end = file.size()
                write_footer(segment, file)
            finally:
                file.close()

    def _write_revived(self) -> bool:
        """Writes a checkpoint with the revived records; False if there is no space for it."""
        state = self._state
        number, state.segment = state.segment, state.segment + 1
        buffers = checkpoint.encode(number, state, set(), first_own=number, clean=state.clean)
        try:
            checkpoint.write(self._disk, state.store_id, number, list(buffers))
        except OSError as error:
            if error.errno not in FULL:
                raise
            logger.warning("no space for the rebuilt indexes: %s", error)
            return False
        state.checkpoint = number
        return True


def _has_settled(part: SegmentPart) -> bool:
    """Whether something in the part is settled."""
    return bool(part.front or part.dead or part.partial)


def revive(part: SegmentPart, aligned: Aligned, marks: dict[int, int]) -> int:
    """Makes records unsettled whose ordinals are uncertain, unless all possible ones are settled.
    Returns how many of them may be settled; raises the queue's mark, so that their messages are
    redelivered."""
    dead, begun, front = sorted(part.dead), sorted(part.partial), part.front
    revived, last = 0, 0
    for ordinal, (low, high) in aligned.unsure.items():
        settled = _between(dead, low, high) + max(0, min(high + 1, front) - low)
        if settled == high + 1 - low:
            continue
        part.revive(ordinal)
        if settled or _between(begun, low, high):
            revived += 1
            last = max(last, aligned.index[ordinal].last)
    if revived:
        marks[part.queue_id] = max(last, marks.get(part.queue_id, 0))
        more = max(0, _unsettled_count(part, aligned.index) - part.unsettled)
        part.unsettled += more
        part.segment.unsettled += more
    return revived


def _between(ordinals: list[int], low: int, high: int) -> int:
    """Returns how many of these ascending ordinals are from `low` to `high`."""
    return bisect_right(ordinals, high) - bisect_left(ordinals, low)


def _unsettled_count(part: SegmentPart, index: RecordIndex) -> int:
    """Returns the number of unsettled messages in a part's records."""
    unsettled = 0
    for ordinal in range(part.front, part.records):
        if not part.is_dead(ordinal):
            settled = int.from_bytes(part.partial.get(ordinal, b""), "little").bit_count()
            unsettled += max(0, index[ordinal].count - settled)
    return unsettled
