"""Compaction: copies unsettled messages out of nearly empty segments, so that one dead letter does
not keep a whole segment.

The unsettled messages of sealed segments that are mostly dead are copied into a new file; many
small segments, each of which makes a start slower, are merged into one. There are three stages,
none of which blocks the broker's thread:

1. Survey: the unsettled records of each part are noted, in slices. Messages settled after that are
   found in the third stage; nothing is ever added to a sealed segment.
2. Copy (`copier.py`), on a worker's thread.
3. Switch (`relocation.py`): records are pointed to their new locations, in slices.

Compaction needs no record in the log: until a checkpoint lists the new file, recovery uses the old
segments and ignores the new file. No checkpoint is made during a switch.

Each compaction makes measurable progress, so an idle store comes to rest: it leaves behind at least
three quarters of its victims' messages, or makes one file of at least `MERGE`.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from typing import Final

from ..clock import Clock
from ..slices import run_slice
from .copied_records import CompactedSegment, Survivors
from .copier import Copier
from .disk import Disk
from .log import Log
from .reader import DamagedRecord, RecordReader
from .record import KIND_COMPACTED, FileHeader
from .relocation import relocate
from .segment import Segment, segment_name
from .segment_part import SegmentPart
from .work import Worker

logger = logging.getLogger(__name__)

LIVE_SHARE: Final = 4
"""A segment is compacted when less than this part of its messages is left."""
MERGE: Final = 8
"""At least this many small files are merged into one."""
MESSAGES: Final = 100_000
"""Beyond this, no more files are added than needed: each record in a copy takes 50 bytes of memory.
"""
FILE_BYTES: Final = 64 * 1024 * 1024
RECORDS_AT_ONCE: Final = 64
"""Records that one step surveys: a partly settled record takes up to 20 us."""


class Compactor:
    """Chooses segments to compact and compacts them, one file at a time."""

    def __init__(
        self, disk: Disk, worker: Worker, log: Log, reader: RecordReader, clock: Clock
    ) -> None:
        self._disk = disk
        self._worker = worker
        self._log = log
        self._reader = reader
        self._clock = clock
        self._before = 0
        self._victims: list[Segment] = []
        self._unreadable: set[int] = set()
        self._survey: Iterator[None] | None = None
        self._copy: CompactedSegment | None = None
        self._switch: Iterator[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a survey or a switch is under way."""
        return self._survey is not None or self._switch is not None

    @property
    def is_ready(self) -> bool:
        """Whether there is a copy to switch to."""
        return self._copy is not None

    def begin(self, before: int) -> None:
        """Chooses segments older than `before`; `work` compacts them."""
        self._before = before
        if self._victims:
            return
        victims = self._choose(before)
        wanted = sum(segment.end * segment.unsettled // segment.total for segment in victims)
        if victims and self._disk.free_bytes() >= 2 * wanted:
            self._victims = victims
            self._survey = self._survey_all()

    def work(self) -> bool:
        """Does a slice of work; True if no checkpoint may be made before the next slice."""
        if self._survey is not None:
            if run_slice(self._survey, self._clock):
                return True
            self._survey = None
        if self._copy is not None:
            self._switch, self._copy = relocate(self._copy, self._log.segments), None
        if self._switch is None:
            return False
        if run_slice(self._switch, self._clock):
            return True
        self._end_switch()
        self._log.roll()  # The log continues after the new file, which a checkpoint lists.
        return False

    def finish(self) -> None:
        """Completes a switch that has begun, when the store stops."""
        for _ in self._switch or ():
            pass
        self._end_switch()

    def _end_switch(self) -> None:
        self._switch = None
        self._victims = []

    def _choose(self, before: int) -> list[Segment]:
        """Returns the emptiest segments, as many as fill a file; or, if there are many small ones,
        some of about the same size, so that a message is copied a few times at most."""
        sealed = [
            segment
            for segment in self._log.segments.values()
            if segment.sealed
            and segment.number < before
            and segment.unsettled
            and not segment.is_fenced
            and not segment.keeps_indexes
            and segment.number not in self._unreadable
        ]
        sparse = [segment for segment in sealed if segment.unsettled * LIVE_SHARE < segment.total]
        if sparse:
            return _fill(sorted(sparse, key=lambda segment: segment.unsettled / segment.total), 1)
        small = [segment for segment in sealed if segment.end < FILE_BYTES // MERGE]
        if len(small) < MERGE:
            return []
        small.sort(key=_end)
        max_end = MERGE * small[MERGE - 1].end
        return _fill([segment for segment in small if segment.end <= max_end], MERGE)

    def _survey_all(self) -> Iterator[None]:
        """Notes the unsettled records of the victims, then starts the copy."""
        survivors: list[Survivors] = []
        for segment in self._victims:
            for part in list(segment.parts.values()):
                if part.unsettled:
                    found = Survivors(part)
                    survivors.append(found)
                    yield from _survey(part, found)
        self._start_copy(survivors)

    def _start_copy(self, survivors: list[Survivors]) -> None:
        number = self._log.take_number()
        header = FileHeader(KIND_COMPACTED, self._log.store_id, number).encode()

        def job() -> CompactedSegment | OSError | DamagedRecord:
            try:
                return Copier(self._disk, self._reader, number, header).run(survivors)
            except (OSError, DamagedRecord) as error:
                self._remove(segment_name(number))
                return error

        self._worker.run(job, self._copied)

    def _remove(self, name: str) -> None:
        """Removes an unfinished copy, so that it does not fill the disk; if that fails, it is a
        dead segment from the next start on."""
        try:
            if name in self._disk.names():
                self._disk.remove(name)
        except OSError as error:
            logger.warning("%s, which was not finished, could not be removed: %s", name, error)

    def _copied(self, result: CompactedSegment | OSError | DamagedRecord) -> None:
        if isinstance(result, CompactedSegment):
            self._copy = result
            return
        numbers = [segment.number for segment in self._victims]
        self._victims = []
        if isinstance(result, OSError) and result.errno == errno.EIO:
            self._worker.failed(result)
            return
        if isinstance(result, DamagedRecord):
            logger.warning("a segment is not compacted: %s", result)
            self._unreadable.add(result.segment)
            self.begin(self._before)  # The others are.
        else:
            logger.warning("segments %s can't be compacted: %s", numbers, result)


def _end(segment: Segment) -> int:
    return segment.end


def _fill(segments: list[Segment], at_least: int) -> list[Segment]:
    """Returns as many of the first segments as fill a file, and `at_least` so many."""
    size = count = 0
    chosen: list[Segment] = []
    for segment in segments:
        size += segment.end * segment.unsettled // segment.total
        count += segment.unsettled
        if len(chosen) >= at_least and (size > FILE_BYTES or count > MESSAGES):
            break
        chosen.append(segment)
    return chosen


def _survey(part: SegmentPart, survivors: Survivors) -> Iterator[None]:
    for first in range(part.front, part.records, RECORDS_AT_ONCE):
        for ordinal in range(first, min(first + RECORDS_AT_ONCE, part.records)):
            if not part.is_dead(ordinal):
                survivors.add(ordinal, part.settled_of(ordinal))
        yield
