"""Evicts batches from memory, and fetches their bytes again.

Persistent batches are in the log already. Transient ones are written to overflow files first, on a
worker's thread. Fetches are combined: many small batches cost little more than one.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from threading import Lock

from ..message.batch import Batch, BatchLocation
from ..slices import for_each
from . import read_size
from .codec import decode_messages
from .disk import Disk
from .encoder import encode_messages
from .location import BEING_WRITTEN, OverflowLocation, RecordLocation
from .overflow import Overflow
from .port import Batches
from .reader import DamagedRecord, RecordReader
from .split_entries import SplitLocations, reassemble
from .work import Worker
from .writer import Writer

logger = logging.getLogger(__name__)


class BatchEviction(Batches):
    """Evicts and fetches the batches of a store."""

    def __init__(self, disk: Disk, worker: Worker, writer: Writer, reader: RecordReader) -> None:
        self._worker = worker
        self._writer = writer
        self._reader = reader
        self.leaving_bytes = 0
        """Bytes of batches that leave memory when they are written."""
        self._overflow = Overflow(disk)
        self._overflowing: list[Batch] = []
        self._overflow_lock = Lock()
        self._writing_overflow = Lock()
        self._fetching: dict[Batch, list[Callable[[], None]]] = {}
        self._to_fetch: deque[tuple[Batch, BatchLocation | None]] = deque()

    def evict(self, batch: Batch) -> bool:
        location = batch.location
        if location is None:
            self._overflow_later(batch)
            return False
        if not self._can_be_read(location):
            return False
        if batch.resident:
            batch.evict()
        return True

    def _can_be_read(self, location: BatchLocation) -> bool:
        if isinstance(location, RecordLocation):
            return self._writer.has_written(location.segment, location.offset)
        return location is not BEING_WRITTEN

    def _overflow_later(self, batch: Batch) -> None:
        """Starts to write a transient batch to an overflow file; it leaves memory after that."""
        batch.location = BEING_WRITTEN
        self.leaving_bytes += batch.size_bytes
        with self._overflow_lock:
            self._overflowing.append(batch)
            is_first = len(self._overflowing) == 1
        if is_first:
            self._worker.run(self._write_overflow, self._overflowed)

    def _write_overflow(self) -> list[tuple[Batch, OverflowLocation | None]]:
        with self._overflow_lock:
            batches, self._overflowing = self._overflowing, []
        # A second job may begin before this one has written everything.
        with self._writing_overflow:
            return [(batch, self._write_to_overflow(batch)) for batch in batches]

    def _write_to_overflow(self, batch: Batch) -> OverflowLocation | None:
        try:
            return self._overflow.append(encode_messages(batch, (), 0))
        except OSError as error:
            logger.warning("can't page out transient messages, no space on disk: %s", error)
            return None

    def _overflowed(self, locations: list[tuple[Batch, OverflowLocation | None]]) -> None:
        for batch, location in locations:
            self.leaving_bytes -= batch.size_bytes
            batch.location = location
            if location is not None and batch.resident:
                batch.evict()

    def fetch(self, batch: Batch, ready: Callable[[], None]) -> None:
        waiting = self._fetching.get(batch)
        if waiting is not None:
            waiting.append(ready)
            return
        self._fetching[batch] = [ready]
        location = batch.location
        self._to_fetch.append(
            (batch, location.snapshot() if isinstance(location, SplitLocations) else location)
        )
        if len(self._fetching) == 1:
            self._read_next()

    def _read_next(self) -> None:
        """Starts one job for the batches that are requested so far."""
        chosen: list[tuple[Batch, BatchLocation | None]] = []
        room = read_size.CHUNK_BYTES
        while self._to_fetch and room > 0 and len(chosen) < read_size.CHUNK_BATCHES:
            chosen.append(self._to_fetch.popleft())
            room -= chosen[-1][0].size_bytes

        def job() -> list[tuple[Batch, Batch | None]]:
            return [(batch, self._read_or_log(batch, location)) for batch, location in chosen]

        self._worker.run(job, self._fetched)

    def _read_or_log(self, batch: Batch, location: BatchLocation | None) -> Batch | None:
        try:
            return self._read_batch(batch, location)
        except (DamagedRecord, OSError) as error:
            logger.error("messages can't be read: %s", error)
            return None

    def _fetched(self, found: list[tuple[Batch, Batch | None]]) -> None:
        calls: list[Callable[[], None]] = []
        for batch, read in found:
            if read is not None and not batch.resident:
                batch.restore(read)
            calls += self._fetching.pop(batch)
        if self._to_fetch:
            self._read_next()
        for _ in for_each(calls, _call):
            pass

    def _read_batch(self, batch: Batch, location: BatchLocation | None) -> Batch:
        """Reads a batch from its location. Raises `DamagedRecord` or `OSError`."""
        if isinstance(location, SplitLocations):
            fragments = [(first, self._read_record(where)) for first, where in location.in_order]
            return reassemble(batch, fragments)
        if isinstance(location, OverflowLocation):
            body = memoryview(location.file.read(location.offset, location.size))
            return decode_messages(body, batch.sequence, 0).batch
        assert isinstance(location, RecordLocation)
        return self._read_record(location)

    def _read_record(self, where: RecordLocation) -> Batch:
        return self._reader.record(where.segment, where.offset, where.size).batch(0)


def _call(action: Callable[[], None]) -> None:
    action()
