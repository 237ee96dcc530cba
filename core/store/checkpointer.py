"""Keeps the log short: takes a checkpoint at each new segment and removes dead segments.

A checkpoint is made in slices of a millisecond beside the broker's work. It is written only when
everything that the slices may have read is synced: it must not contain a settlement whose
counterpart, a dead letter's copy, is not durable yet. A segment is removed when neither of the last
two checkpoints lists it, so that a start can use either of them.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from typing import Final

from ..clock import Clock
from ..slices import run_slice
from . import checkpoint
from .checkpoint import SUFFIX, CheckpointState, checkpoint_name
from .compactor import Compactor
from .disk import Disk
from .log import MIB, Log
from .reader import RecordReader
from .reserve import Reserve
from .segment import segment_name
from .work import Worker

logger = logging.getLogger(__name__)

LOG_SHARE: Final = 4
"""Checkpoints are this many times their size apart, in bytes of the log or in bytes to be freed."""
DEAD_CHECK_MS: Final = 1_000
DEAD_BYTES: Final = 8 * MIB
DEAD_SEGMENTS: Final = 16
"""Bytes or number of dead segments from which a checkpoint is taken early, unless it would take
more space than it frees."""
SUSPENDED_POLL_MS: Final = 10
"""How long suspended work waits before it looks again: files are linked meanwhile."""
BUFFER_BYTES: Final = 262_144
"""Size of the buffers that collect a checkpoint; 100,000 small ones would all be freed at once."""


class Checkpointer:
    """Takes checkpoints of a store and removes files that are no longer needed."""

    def __init__(
        self,
        disk: Disk,
        worker: Worker,
        log: Log,
        state: CheckpointState,
        reserve: Reserve,
        reader: RecordReader,
        compactor: Compactor,
        clock: Clock,
    ) -> None:
        self._disk = disk
        self._worker = worker
        self._log = log
        self._state = state
        self._reserve = reserve
        self._reader = reader
        self._compactor = compactor
        self._clock = clock
        self._since = state.checkpoint  # The number of the last checkpoint, 0 for none.
        self._listed = set(state.segments)
        self._dead_checked_ms = 0
        self._due = False
        self._slices: Iterator[None] | None = None
        self._buffers: list[bytearray] = []
        self._now_listed: set[int] = set()
        self._number = 0
        self._barrier: int | None = None
        self._writing = False
        self._holds = 0

    def suspend(self) -> None:
        """Stops making checkpoints until `release`; one that is complete is still written."""
        self._holds += 1

    def release(self) -> None:
        self._holds -= 1

    def begin(self) -> None:
        """Makes a checkpoint due; if one is under way, another one follows it."""
        self._due = True

    def check_dead_segments(self, now_ms: int) -> int | None:
        """Closes the open segment early if there are many dead ones: a checkpoint removes them.
        Returns in how many milliseconds to check again, None for not before messages are
        settled."""
        settlements = self._log.settlements
        if now_ms - self._dead_checked_ms < DEAD_CHECK_MS:
            return DEAD_CHECK_MS if settlements.has_grown else None
        self._dead_checked_ms, settlements.has_grown = now_ms, False
        self._reserve.take()
        segments = self._state.segments.values()
        dead = [segment.end for segment in segments if segment.sealed and segment.is_dead]
        is_much = sum(dead) > max(DEAD_BYTES, self._log.room_bytes)
        is_urgent = self._reserve.is_used or is_much or len(dead) > DEAD_SEGMENTS
        if dead and is_urgent and self.is_idle:
            self._log.roll()
        return DEAD_CHECK_MS if is_urgent else None

    def work(self) -> int | None:
        """Does a slice of work. Returns in how many milliseconds to call again, None for not before
        something is committed."""
        if self._writing:
            return None
        if self._barrier is not None:
            if self._log.progress.committed >= self._barrier:
                self._write()
            return None
        if self._holds:
            return SUSPENDED_POLL_MS if self._due or self._slices else None
        if self._slices is None:
            if self._compactor.work():
                return 1
            if not self._due:
                return None
            if self._log.settlements.uncounted:
                return 1  # Logged before the checkpoint, which would list them as unsettled.
            self._due = False
            self._slices = self._collect(self._log.open_number, clean=False)
        if run_slice(self._slices, self._clock):
            return 1
        self._slices = None
        self._barrier = self._log.barrier()
        self._log.request()
        return 1

    def _collect(self, number: int, *, clean: bool) -> Iterator[None]:
        """Encodes a checkpoint into the buffers, in steps."""
        self._number = number
        self._now_listed = set()
        self._buffers = [bytearray()]
        first_own = self._state.segment
        for buffer in checkpoint.encode(
            number, self._state, self._now_listed, first_own=first_own, clean=clean
        ):
            if len(self._buffers[-1]) > BUFFER_BYTES:
                self._buffers.append(bytearray())
            self._buffers[-1] += buffer
            yield

    def _write(self) -> None:
        self._barrier = None
        self._writing = True
        number, buffers, dead = self._number, self._buffers, self._dead()
        self._buffers = []

        def job() -> int | OSError:
            try:
                size = checkpoint.write(self._disk, self._state.store_id, number, buffers)
                self._remove(number, dead)
            except OSError as error:
                return error
            return size

        def done(result: int | OSError) -> None:
            self._writing = False
            if isinstance(result, OSError):
                self._failed(result)
            else:
                self._written(number, dead, result)

        self._worker.run(job, done)

    @property
    def is_idle(self) -> bool:
        return not (
            self._due
            or self._writing
            or self._slices
            or self._compactor.is_busy
            or self._barrier is not None
        )

    def _dead(self) -> list[int]:
        """Returns the segments that neither of the last two checkpoints needs; on a disk that is
        short of space, those that the last one does not need."""
        short = self._reserve.is_used
        before = self._number if short else self._since
        listed = self._now_listed if short else self._now_listed | self._listed
        return [
            segment.number
            for segment in list(self._state.segments.values())
            if segment.number < before and segment.is_dead and segment.number not in listed
        ]

    def _remove(self, number: int, dead: list[int]) -> None:
        keep = {checkpoint_name(number)}
        if not self._reserve.is_used:
            keep.add(checkpoint_name(self._since))
        for name in self._disk.names():
            if name.endswith(SUFFIX) and name not in keep and name < checkpoint_name(number):
                self._disk.remove(name)
        for segment in dead:
            self._reader.forget(segment)
            self._disk.remove(segment_name(segment))

    def _written(self, number: int, dead: list[int], size: int) -> None:
        self._log.room_bytes = LOG_SHARE * size
        self._since, self._listed = number, self._now_listed
        for segment in dead:
            del self._state.segments[segment]
        self._compactor.begin(number)

    def _failed(self, error: OSError) -> None:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            self._worker.failed(error)
            return
        logger.warning("no space for a checkpoint (%s); will retry", error)

    def finish(self, number: int) -> None:
        """Writes the last checkpoint of a store that stops in order."""
        self._compactor.finish()
        for _ in self._collect(number, clean=True):
            pass
        dead = self._dead()
        try:
            size = checkpoint.write(self._disk, self._state.store_id, number, self._buffers)
            self._remove(number, dead)
        except OSError as error:
            logger.error("the last checkpoint could not be written: %s", error)
            return
        self._written(number, dead, size)
