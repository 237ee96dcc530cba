"""All file access of the store, behind an interface that tests implement with failing disks.

Names are plain file names in one directory. Every method may raise `OSError`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

Result = TypeVar("Result")

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""macOS: a plain sync leaves data in the drive's cache."""
FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
"""Errors that only mean that there is no space."""
NO_FILE: Final = "it has the name of a file of the log, but is none; move it elsewhere"
SPARE_DESCRIPTORS: Final = 4
_BUFFERS_MAX: Final = 1024
"""Buffers that one system call takes at most (IOV_MAX)."""


class File(Protocol):
    """An open file."""

    def write(self, at: int, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        """Writes all buffers one after another from offset `at` on, or raises."""

    def read(self, at: int, size: int) -> bytes:
        """Reads `size` bytes, fewer only at the end of the file."""

    def sync(self) -> None:
        """Makes everything that was written survive a power failure."""

    def allocate(self, size: int) -> None:
        """Extends the file to `size` bytes with zeros, and allocates the space for it."""

    def truncate(self, size: int) -> None: ...
    def size(self) -> int: ...
    def close(self) -> None: ...


class Disk(Protocol):
    """A directory of files."""

    def create(self, name: str) -> File:
        """Creates a file, open for reading and writing; there must be none of that name."""

    def open(self, name: str) -> File: ...
    def names(self) -> list[str]: ...
    def rename(self, old: str, new: str) -> None:
        """Renames a file; replaces `new` if it exists."""

    def remove(self, name: str) -> None: ...
    def sync_directory(self) -> None:
        """Makes all creations, renames and removals survive a power failure."""

    def free_bytes(self) -> int: ...


class RealFile:
    """A file of the operating system; `release` closes its descriptor."""

    def __init__(self, descriptor: int, release: Callable[[int], None] = os.close) -> None:
        self._descriptor = descriptor
        self._release = release

    def write(self, at: int, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        for first in range(0, len(buffers), _BUFFERS_MAX):
            some = buffers[first : first + _BUFFERS_MAX]
            size = sum(len(buffer) for buffer in some)
            written = os.pwritev(self._descriptor, some, at)
            at += written
            if written < size:
                at = self._write_rest(at, b"".join(some)[written:])

    def _write_rest(self, at: int, rest: bytes) -> int:
        """Writes what is left after a partial write. If the disk is full, the next call raises."""
        while rest:
            written = os.pwrite(self._descriptor, rest, at)
            at += written
            rest = rest[written:]
        return at

    def read(self, at: int, size: int) -> bytes:
        buffers = []
        while size > 0:
            buffer = os.pread(self._descriptor, size, at)
            if not buffer:
                break
            buffers.append(buffer)
            at += len(buffer)
            size -= len(buffer)
        return buffers[0] if len(buffers) == 1 else b"".join(buffers)

    def sync(self) -> None:
        _sync(self._descriptor)

    def allocate(self, size: int) -> None:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._descriptor, 0, size)
        else:
            os.ftruncate(self._descriptor, max(size, self.size()))

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            self._release(descriptor)

    def __del__(self) -> None:
        self.close()


def _sync(descriptor: int) -> None:
    if _FULL_SYNC is None:
        os.fdatasync(descriptor)
    else:
        fcntl.fcntl(descriptor, _FULL_SYNC)


def make_directory(directory: Path, mode: int = 0o777) -> None:
    """Creates a missing directory and its parents, all synced; `mode` applies to the last one.
    Raises `OSError`."""
    if not directory.is_dir():
        make_directory(directory.parent)
        directory.mkdir(mode=mode, exist_ok=True)
        _sync_directory(directory.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class RealDisk:
    """A directory of the operating system, created if it is missing.

    Some spare descriptors are kept open, so that a new segment can be opened even if clients use
    all other descriptors of the process. With `read_only`, files are opened for reading alone, so
    that it works on a read-only file system.
    """

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        self._directory = directory
        self._access = os.O_RDONLY if read_only else os.O_RDWR
        self._spare: list[int] = []
        make_directory(directory, mode=0o700)
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        self._refill()

    def __del__(self) -> None:
        for descriptor in (self._descriptor, *self._spare):
            os.close(descriptor)
        self._descriptor = -1  # files may be freed after it

    def create(self, name: str) -> RealFile:
        return RealFile(self._open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL), self._release)

    def open(self, name: str) -> RealFile:
        path = self._directory / name
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(errno.EINVAL, NO_FILE, str(path))
        return RealFile(self._open(name, self._access), self._release)

    def _open(self, name: str, flags: int) -> int:
        flags |= os.O_CLOEXEC
        return self._with_spare(lambda: os.open(self._directory / name, flags, 0o600))

    def _with_spare(self, call: Callable[[], Result]) -> Result:
        """Calls `call`; while there is no free descriptor, closes a spare one and calls it again. A
        connection that comes meanwhile may have taken the one before."""
        while True:
            try:
                result = call()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._spare:
                    raise
                os.close(self._spare.pop())
            else:
                self._refill()
                return result

    def _release(self, descriptor: int) -> None:
        """Closes it, or keeps it as a spare one where some are missing: in one step, since others
        wait for the next that is free."""
        if self._descriptor >= 0 and len(self._spare) < SPARE_DESCRIPTORS:
            os.dup2(self._descriptor, descriptor, inheritable=False)
            self._spare.append(descriptor)
        else:
            os.close(descriptor)

    def _refill(self) -> None:
        while len(self._spare) < SPARE_DESCRIPTORS:
            try:
                self._spare.append(os.dup(self._descriptor))
            except OSError:
                return  # None are free: fewer spare ones remain.

    def names(self) -> list[str]:
        return sorted(self._with_spare(lambda: os.listdir(self._directory)))

    def rename(self, old: str, new: str) -> None:
        os.replace(self._directory / old, self._directory / new)

    def remove(self, name: str) -> None:
        os.unlink(self._directory / name)

    def sync_directory(self) -> None:
        os.fsync(self._descriptor)

    def free_bytes(self) -> int:
        found = os.fstatvfs(self._descriptor)
        return found.f_bavail * found.f_frsize

    def total_bytes(self) -> int:
        """Returns the size of the file system."""
        found = os.fstatvfs(self._descriptor)
        return found.f_blocks * found.f_frsize
