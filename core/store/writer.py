"""The one that writes: everything that waits, then one sync for all who asked (group commit).

The gather is the previous sync; there is no timer. A full disk loses nothing: the batch stays,
those who wait are refused, and it is tried again until there is space. Any other error of the
disk is final, since after a failed sync nobody knows what was kept: everybody is refused, and
nothing is ever written again (the kernel marks such pages clean; a later sync would succeed).
"""

from __future__ import annotations

import errno
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Thread

from .disk import FULL, Disk, File
from .record import Buffer, seal

logger = logging.getLogger(__name__)

RETRY_S = 1.0
WRITE_BYTES = 8 * 1024 * 1024
"""What is put together for one write."""


@dataclass(slots=True)
class Append:
    """A record to be written at a place that is known already."""

    offset: int
    kind: int
    flags: int
    sequence: int
    buffers: list[Buffer]


@dataclass(slots=True)
class Footer:
    """The last records of the open segment. They are encoded when they are written, for they may
    be about 100,000 queues; `end` is the segment's length then."""

    encode: Callable[[int], list[tuple[int, list[Buffer]]]]
    """Kinds and bodies, when they begin at this offset."""
    end: int = 0


@dataclass(slots=True)
class Roll:
    """The open segment is complete; another one begins, unless it has no name."""

    number: int = 0
    name: str = ""
    header: bytes = b""
    allocate_bytes: int = 0


@dataclass(slots=True)
class WriteGroup:
    """What is written together; all before and in it is kept when its `number` is reported."""

    number: int
    synced: bool
    size: int = 0
    work: list[Append | Footer | Roll] = field(default_factory=list)


class Writer:
    """Writes batches in order. `report` gets (committed, refused, freed bytes) after each step,
    `failed` the error that ended it; both are called on the writer's thread."""

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
        self._thread: Thread | None = None
        self._ended = False
        self._retry = Event()
        self.is_dead = False
        self.is_stuck = False
        self.error: OSError | None = None
        self.syncs = 0
        self.written_bytes = 0

    def start(self) -> None:
        self._thread = Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    @property
    def is_started(self) -> bool:
        return self._thread is not None

    def has_written(self, segment: int, offset: int) -> bool:
        """Whether what stands at this place can be read back."""
        return segment < self._segment or (segment == self._segment and offset < self._end)

    def put(self, group: WriteGroup) -> None:
        """Hands over; without a thread it is written now."""
        if self._thread is None:
            self._take(group)
            if not self.is_dead:
                self._step()
        else:
            self._queue.put(group)

    def stop(self) -> None:
        """Returns when everything is written, or can't be."""
        if self._thread is not None:
            self._queue.put(None)
            self._retry.set()
            self._thread.join()
            self._thread = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def retry(self) -> None:
        """There may be space again."""
        self._retry.set()
        if self._thread is None and not self.is_dead:
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
        """Writes what stands in line; False if it has to stay there."""
        try:
            self._write()
            if self._synced and self._file is not None:
                self._sync(self._file)
        except _SyncError as error:
            return self._fail(error.cause)
        except OSError as error:
            return self._full(error) if error.errno in FULL else self._fail(error)
        except Exception as error:
            # A thread that ended in silence would let everybody wait for ever.
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

    def _full(self, error: OSError) -> bool:
        try:
            has_room = self._make_room()
        except OSError as worse:
            return self._fail(worse)
        if has_room:
            return self._step()
        if self._synced:
            logger.error("the disk is full (%s): publishes are refused until it has space", error)
        self.is_stuck = True
        self._report(0, self._number, 0)
        return False

    def _write(self) -> None:
        line = self._work
        while line:
            first = line[0]
            if not isinstance(first, Append):
                if isinstance(first, Roll):
                    self._roll(first)
                else:
                    self._complete(first)
                line.popleft()
                continue
            buffers: list[Buffer] = []
            end, count = self._end, 0
            for work in line:
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
                line.popleft()

    def _complete(self, footer: Footer) -> None:
        """Writes the last records together: an attempt that a full disk cuts short leaves none."""
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
            self._disk.remove(roll.name)  # an attempt that the full disk cut short
        self._file = self._disk.create(roll.name)
        self._file.write(0, [roll.header])
        self._allocate(self._file, roll.allocate_bytes, len(roll.header))
        self._sync(self._file)
        self._disk.sync_directory()
        self._end = len(roll.header)
        self._segment = roll.number

    def _allocate(self, file: File, size: int, header_bytes: int) -> None:
        """Space taken in advance makes syncs cheaper; a disk that has none may still have some."""
        try:
            file.allocate(size)
        except OSError as error:
            if error.errno not in FULL:
                raise
            file.truncate(header_bytes)

    def _sync(self, file: File) -> None:
        try:
            file.sync()
        except OSError as error:
            raise _SyncError(error) from error
        self.syncs += 1


class _SyncError(Exception):
    """Even for want of space: what was kept is unknown from here on."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause
