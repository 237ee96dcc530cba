"""The thread that writes the log: all pending work, then one sync for all of it (group commit).

Work is collected during the previous sync; there is no timer. On a full disk nothing is lost: the
pending work stays, its commit numbers are refused, and it is tried again until there is space. Any
other disk error is final, since after a failed sync it is unknown what is durable: all commits are
refused, and nothing is written again (the kernel marks such pages clean; a later sync would
succeed).
"""

from __future__ import annotations

import errno
import logging
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import perf_counter
from typing import Final

from .disk import FULL, Disk, File
from .record import Buffer, seal
from .write_metrics import WriteMetrics

logger = logging.getLogger(__name__)

RETRY_S: Final = 1.0
WRITE_BYTES: Final = 8 * 1024 * 1024
"""Size from which no more records are joined into one write."""


class Append:
    """A record to be written at an offset of the open segment."""

    __slots__ = ("buffers", "flags", "kind", "offset", "sequence")

    def __init__(
        self, offset: int, kind: int, flags: int, sequence: int, buffers: list[Buffer]
    ) -> None:
        self.offset = offset
        self.kind = kind
        self.flags = flags
        self.sequence = sequence
        self.buffers = buffers


class Footer:
    """The last records of the open segment; `end` is the segment's length when they are written.

    They are encoded only when they are written, since they may be about 100,000 queues: `encode`
    returns kinds and bodies, for records that begin at an offset.
    """

    __slots__ = ("encode", "end")

    def __init__(self, encode: Callable[[int], list[tuple[int, list[Buffer]]]]) -> None:
        self.encode = encode
        self.end = 0


class Roll:
    """Completes the open segment and begins another one, if `name` is not empty."""

    __slots__ = ("allocate_bytes", "header", "name", "number")

    def __init__(
        self, number: int = 0, name: str = "", header: bytes = b"", allocate_bytes: int = 0
    ) -> None:
        self.number = number
        self.name = name
        self.header = header
        self.allocate_bytes = allocate_bytes


class WriteGroup:
    """Work that is written together, and synced if `synced`; `number` is its commit number."""

    __slots__ = ("number", "size", "synced", "work")

    def __init__(self, number: int) -> None:
        self.number = number
        self.synced = False
        self.size = 0
        self.work: list[Append | Footer | Roll] = []


class Writer:
    """Writes groups in order. `report` is called with (committed, refused, freed bytes) after each
    step, and `failed` with a final error; both are called on the writer's thread."""

    def __init__(
        self,
        disk: Disk,
        report: Callable[[int, int, int], None],
        failed: Callable[[OSError], None],
        make_room: Callable[[], bool],
    ) -> None:
        self._disk = disk
        self._report = report
        self._failed = failed
        self._make_room = make_room
        self._queue: SimpleQueue[WriteGroup | None] = SimpleQueue()
        self._work: deque[Append | Footer | Roll] = deque()
        self._number = 0
        self._synced = False
        self._size = 0
        self._file: File | None = None
        self._segment = 0
        self._end = 0
        self._log_thread: Thread | None = None
        self._ended = False
        self._retry = Event()
        self.is_dead = False
        self.is_stuck = False
        self.error: OSError | None = None
        self.syncs = 0
        self.written_bytes = 0
        self.metrics = WriteMetrics()
        self._committed_bytes = 0
        """What had been written at the last commit."""

    def start(self) -> None:
        self._log_thread = Thread(target=self._run, name="log-writer", daemon=True)
        self._log_thread.start()

    def has_written(self, segment: int, offset: int) -> bool:
        """Whether a record at this location can be read back."""
        return segment < self._segment or (segment == self._segment and offset < self._end)

    def put(self, group: WriteGroup) -> None:
        """Queues a group for the thread; writes it at once if there is no thread."""
        if self._log_thread is None:
            self._take(group)
            if not self.is_dead:
                self._step()
        else:
            self._queue.put(group)

    def stop(self) -> None:
        """Ends the thread when everything is written or can't be."""
        if self._log_thread is not None:
            self._queue.put(None)
            self._retry.set()
            self._log_thread.join()
            self._log_thread = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def retry(self) -> None:
        """Tries again to write to a disk that was full."""
        self._retry.set()
        if self._log_thread is None and not self.is_dead:
            self._step()

    # -- on the thread

    def _run(self) -> None:
        while not self._ended:
            self._take(self._queue.get())
            self._take_all()
            while not (self.is_dead or self._step() or self._ended):
                self._retry.wait(RETRY_S)
                self._retry.clear()
                self._take_all()

    def _take(self, group: WriteGroup | None) -> None:
        if group is None:
            self._ended = True
        elif not self.is_dead:
            self._work.extend(group.work)
            self._number = group.number
            self._synced |= group.synced
            self._size += group.size

    def _take_all(self) -> None:
        try:
            while True:
                self._take(self._queue.get_nowait())
        except Empty:
            pass

    def _step(self) -> bool:
        """Writes and syncs the pending work; False if it has to stay, because the disk is full."""
        try:
            self._write()
            if self._synced and self._file is not None:
                self._commit(self._file)
        except _SyncError as error:
            return self._fail(error.cause)
        except OSError as error:
            return self._handle_full_disk(error) if error.errno in FULL else self._fail(error)
        except Exception as error:
            # If the thread ended without a report, its callers would wait forever.
            logger.exception("internal error in the log's writer")
            return self._fail(OSError(errno.EIO, f"internal error: {error!r}"))
        committed = self._number if self._synced else 0
        self.is_stuck = False
        freed, self._size = self._size, 0
        self._synced = False
        self._report(committed, 0, freed)
        return True

    def _fail(self, error: OSError) -> bool:
        self.is_dead = True
        self.error = error
        self._work.clear()
        self._failed(error)
        return True

    def _handle_full_disk(self, error: OSError) -> bool:
        try:
            has_room = self._make_room()
        except OSError as worse:
            return self._fail(worse)
        if has_room:
            return self._step()
        if self._synced:
            logger.error(
                "the disk is full (%s): publishes are refused until space is available", error
            )
        self.is_stuck = True
        self._report(0, self._number, 0)
        return False

    def _write(self) -> None:
        pending = self._work
        while pending:
            first = pending[0]
            if not isinstance(first, Append):
                if isinstance(first, Roll):
                    self._roll(first)
                else:
                    self._complete(first)
                pending.popleft()
                continue
            buffers: list[Buffer] = []
            end, count = self._end, 0
            for work in pending:
                if not isinstance(work, Append) or end - self._end > WRITE_BYTES:
                    break
                assert work.offset == end
                sealed = seal(
                    self._segment, end, work.kind, work.flags, work.sequence, work.buffers
                )
                end += sum(map(len, sealed))
                buffers += sealed
                count += 1
            self._append(end, buffers)
            for _ in range(count):
                pending.popleft()

    def _complete(self, footer: Footer) -> None:
        """Writes the last records with one call, so that on a full disk none of them is left."""
        buffers: list[Buffer] = []
        end = self._end
        for kind, body in footer.encode(end):
            sealed = seal(self._segment, end, kind, 0, 0, body)
            end += sum(map(len, sealed))
            buffers += sealed
        self._append(end, buffers)
        footer.end = end

    def _append(self, end: int, buffers: list[Buffer]) -> None:
        assert self._file is not None
        try:
            self._file.write(self._end, buffers)
        except OSError as error:
            if error.errno in FULL:
                self._file.truncate(self._end)
            raise
        self.written_bytes += end - self._end
        self._end = end

    def _roll(self, roll: Roll) -> None:
        if self._file is not None:
            self._file.truncate(self._end)
            self._sync(self._file)
            self._file.close()
            self._file = None
        if not roll.name:
            return
        if roll.name in self._disk.names():
            self._disk.remove(roll.name)  # An earlier attempt failed on a full disk.
        self._file = self._disk.create(roll.name)
        self._file.write(0, [roll.header])
        self._allocate(self._file, roll.allocate_bytes, len(roll.header))
        self._sync(self._file)
        self._disk.sync_directory()
        self._end = len(roll.header)
        self._segment = roll.number

    def _allocate(self, file: File, size: int, header_bytes: int) -> None:
        """Allocates space for a segment, which makes syncs cheaper; not if there is too little."""
        try:
            file.allocate(size)
        except OSError as error:
            if error.errno not in FULL:
                raise
            file.truncate(header_bytes)

    def _commit(self, file: File) -> None:
        self._sync(file)
        self.metrics.commit_bytes.observe(self.written_bytes - self._committed_bytes)
        self._committed_bytes = self.written_bytes

    def _sync(self, file: File) -> None:
        began_s = perf_counter()
        try:
            file.sync()
        except OSError as error:
            raise _SyncError(error) from error
        self.metrics.sync_s.observe(perf_counter() - began_s)
        self.syncs += 1


class _SyncError(Exception):
    """A failed sync, which is final even for lack of space: it is unknown what is durable."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause
