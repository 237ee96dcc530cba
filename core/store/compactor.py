"""Compaction: one dead letter must not keep a whole segment.

Of sealed segments that are mostly dead, what is left is copied into a file of its own; of many
small ones, which a start finds the slower the more there are, one is made. Three stages follow
each other, and none of them holds up the broker's thread:

1. Survey: what is left of each part is noted, in slices. What is settled after that is found out
   in the third stage; nothing is ever added to a sealed segment.
2. Copy (`copier.py`), on a worker's thread.
3. Switch (`relocation.py`): records are pointed to their new places, in slices.

It needs no record in the log: until a checkpoint lists the new file, a crash finds everything at
the old places, and the new file belongs to nobody. No checkpoint is made during a switch.

Each compaction makes progress by measure, so an idle store comes to rest: it leaves behind at
least three quarters of its victims' messages, or makes one file of at least `MERGE`.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..slices import run_slice
from .copier import Copier, Copy, Survivors
from .disk import Disk
from .reader import DamagedRecord, Reader
from .record import COLD, FileHeader
from .relocation import relocate
from .segment import Segment, segment_name
from .segment_part import SegmentPart

if TYPE_CHECKING:
    from .durable import DurableStore
    from .work import Worker

logger = logging.getLogger(__name__)

LIVE_SHARE = 4
"""A segment is compacted when less than this part of its messages is left."""
MERGE = 8
"""So many small files become one, or more of them."""
MESSAGES = 100_000
"""More files than needed are not added beyond this: each record in a copy takes 50 bytes of
memory."""
FILE_BYTES = 64 * 1024 * 1024
RECORDS_AT_ONCE = 64
"""What one slice surveys: a record of which messages are settled takes up to 20 us."""


class Compactor:
    """Finds segments worth compacting and compacts them, one file at a time."""

    def __init__(self, disk: Disk, worker: Worker, store: DurableStore, reader: Reader) -> None:
        self._disk = disk
        self._worker = worker
        self._store = store
        self._reader = reader
        self._victims: list[Segment] = []
        self._unreadable: set[int] = set()
        self._survey: Iterator[None] | None = None
        self._copy: Copy | None = None
        self._switch: Iterator[None] | None = None

    @property
    def is_busy(self) -> bool:
        """A survey or a switch is under way."""
        return self._survey is not None or self._switch is not None

    @property
    def is_ready(self) -> bool:
        """There is a copy to switch to."""
        return self._copy is not None

    def begin(self, before: int) -> None:
        """Looks for segments older than `before`; those worth it are compacted by `work`."""
        if self._victims:
            return
        victims = self._choose(before)
        wanted = sum(segment.end * segment.unsettled // segment.total for segment in victims)
        if victims and self._disk.free_bytes() >= 2 * wanted:
            self._victims = victims
            self._survey = self._survey_all()

    def work(self) -> bool:
        """Does a slice; True if no checkpoint may be made before the next one."""
        if self._survey is not None:
            if run_slice(self._survey):
                return True
            self._survey = None
        if self._copy is not None:
            self._switch, self._copy = relocate(self._copy, self._store.segments), None
        if self._switch is None:
            return False
        if run_slice(self._switch):
            return True
        self._end_switch()
        self._store.roll()  # The log goes on behind the new file, which a checkpoint lists.
        return False

    def finish(self) -> None:
        """Completes a switch that has begun: the store stops."""
        for _ in self._switch or ():
            pass
        self._end_switch()

    def _end_switch(self) -> None:
        self._switch = None
        self._victims = []

    def _choose(self, before: int) -> list[Segment]:
        """The emptiest first, as many as fill a file; or, if there are many, small ones of about
        the same size, so that a message is copied a few times at most."""
        sealed = [
            segment
            for segment in self._store.segments.values()
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
        small = sorted((held for held in sealed if held.end < FILE_BYTES // MERGE), key=_end)
        if len(small) < MERGE:
            return []
        return _fill([held for held in small if held.end <= MERGE * small[MERGE - 1].end], MERGE)

    def _survey_all(self) -> Iterator[None]:
        """Notes what is left of the victims, and has the copy begin."""
        survivors: list[Survivors] = []
        for segment in self._victims:
            for part in list(segment.parts.values()):
                if part.unsettled:
                    found = Survivors(part)
                    survivors.append(found)
                    yield from _survey(part, found)
        self._start_copy(survivors)

    def _start_copy(self, survivors: list[Survivors]) -> None:
        number = self._store.take_number()
        header = FileHeader(COLD, self._store.store_id, number).encode()

        def job() -> Copy | OSError | DamagedRecord:
            try:
                return Copier(self._disk, self._reader, number, header).run(survivors)
            except (OSError, DamagedRecord) as error:
                self._remove(segment_name(number))
                return error

        self._worker.run(job, self._copied)

    def _remove(self, name: str) -> None:
        """A copy that was not finished must not fill the disk; at worst it is found at a start."""
        try:
            if name in self._disk.names():
                self._disk.remove(name)
        except OSError as error:
            logger.warning("%s, which was not finished, could not be removed: %s", name, error)

    def _copied(self, result: Copy | OSError | DamagedRecord) -> None:
        if isinstance(result, Copy):
            self._copy = result
            return
        numbers = [segment.number for segment in self._victims]
        self._victims = []
        if isinstance(result, OSError) and result.errno == errno.EIO:
            self._store.fail(result)
            return
        if isinstance(result, DamagedRecord):
            # It must not keep the others from being compacted.
            self._unreadable.update(numbers)
        logger.warning("segments %s can't be compacted: %s", numbers, result)


def _end(segment: Segment) -> int:
    return segment.end


def _fill(segments: list[Segment], at_least: int) -> list[Segment]:
    """As many of the first ones as fill a file, or `at_least` so many."""
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
