"""Keeps the log short: a checkpoint at each new segment, and dead segments go.

A checkpoint is made in slices of a millisecond beside the broker's work. It is written only when
everything that the slices may have seen is synced: it must not know of a settlement whose other
half, a dead letter's copy, is not kept yet. A segment is removed when the checkpoint before the
last one did not list it any more, so either of the two can be started from.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..slices import run_slice
from . import checkpoint
from .checkpoint import SUFFIX, checkpoint_name
from .compactor import Compactor
from .disk import Disk
from .segment import segment_name
from .work import Worker

if TYPE_CHECKING:
    from .durable import DurableStore

logger = logging.getLogger(__name__)

LOG_SHARE = 4
"""So many times a checkpoint's size is logged, or freed, for the next one."""
BUFFER_BYTES = 262_144
"""A checkpoint is gathered in pieces of about so much: 100,000 small ones would be freed at once.
"""


class Checkpointer:
    """Takes checkpoints of a store. `since` is the segment that its last one begins with."""

    def __init__(
        self, disk: Disk, worker: Worker, store: DurableStore, compactor: Compactor, since: int
    ) -> None:
        self.checkpoint_bytes = 0
        self._disk = disk
        self._worker = worker
        self._store = store
        self._compactor = compactor
        self._since = since
        self._listed = set(store.segments)
        self._due = False
        self._slices: Iterator[None] | None = None
        self._buffers: list[bytearray] = []
        self._now_listed: set[int] = set()
        self._number = 0
        self._barrier: int | None = None
        self._writing = False

    def begin(self) -> None:
        """A checkpoint is due; it follows if one is under way."""
        self._due = True

    def work(self) -> int | None:
        """Does a slice. Gives in how many milliseconds there is more to do, None for not before
        something was committed."""
        if self._writing:
            return None
        if self._barrier is not None:
            if self._store.committed >= self._barrier:
                self._write()
            return None
        if self._slices is None:
            if self._compactor.work():
                return 1
            if not self._due:
                return None
            if self._store.uncounted:
                return 1  # The log behind the checkpoint would not say that they are settled.
            self._due = False
            self._slices = self._collect(self._store.open_number, clean=False)
        if run_slice(self._slices):
            return 1
        self._slices = None
        self._barrier = self._store.barrier()
        self._store.request()
        return 1

    def _collect(self, number: int, *, clean: bool) -> Iterator[None]:
        """Encodes a checkpoint, in steps."""
        store = self._store
        self._number = number
        self._now_listed = set()
        self._buffers = [bytearray()]
        for buffer in checkpoint.encode(
            number, store.sequence_ceiling, store.definitions, store.marks, store.segments,
            self._now_listed, priority_marks=store.priority_marks, born=store.born, clean=clean,
        ):  # fmt: skip
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
                size = checkpoint.write(self._disk, self._store.store_id, number, buffers)
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
    def worth_bytes(self) -> int:
        """How much is worth a checkpoint: they must not become the larger part of what is
        written."""
        return LOG_SHARE * self.checkpoint_bytes

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
        """Segments that neither of the two last checkpoints needs; on a disk that is short of
        space those that the last one does not need."""
        short = self._store.is_short
        before = self._number if short else self._since
        listed = self._now_listed if short else self._now_listed | self._listed
        return [
            segment.number
            for segment in list(self._store.segments.values())
            if segment.number < before and segment.is_dead and segment.number not in listed
        ]

    def _remove(self, number: int, dead: list[int]) -> None:
        keep = {checkpoint_name(number)}
        if not self._store.is_short:
            keep.add(checkpoint_name(self._since))
        for name in self._disk.names():
            if name.endswith(SUFFIX) and name not in keep and name < checkpoint_name(number):
                self._disk.remove(name)
        for segment in dead:
            self._store.forget(segment)
            self._disk.remove(segment_name(segment))

    def _written(self, number: int, dead: list[int], size: int) -> None:
        self.checkpoint_bytes = size
        self._since, self._listed = number, self._now_listed
        for segment in dead:
            del self._store.segments[segment]
        self._compactor.begin(number)

    def _failed(self, error: OSError) -> None:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            self._store.fail(error)
            return
        logger.warning("no space for a checkpoint (%s); the next segment tries again", error)

    def finish(self, number: int) -> None:
        """The last checkpoint of a store that stops in order."""
        self._compactor.finish()
        for _ in self._collect(number, clean=True):
            pass
        dead = self._dead()
        try:
            size = checkpoint.write(self._disk, self._store.store_id, number, self._buffers)
            self._remove(number, dead)
        except OSError as error:
            logger.error("the last checkpoint could not be written: %s", error)
            return
        self._written(number, dead, size)
