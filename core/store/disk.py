"""All file access of the store, so that tests can put a disk that fails in its place.

Names are plain file names in one directory. Everything may raise `OSError`.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

Result = TypeVar("Result")

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""macOS: a plain sync leaves it in the drive's memory."""
FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
"""Errors that say no more than that there is no space."""
SPARE_DESCRIPTORS = 4
_BUFFERS_MAX = 1024
"""What one call may be given (IOV_MAX)."""


class File(Protocol):
    def write(self, at: int, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        """Writes all pieces one after another from offset `at` on, or raises."""

    def read(self, at: int, size: int) -> bytes:
        """Fewer bytes only at the end of the file."""

    def sync(self) -> None:
        """What was written so far survives a power cut."""

    def allocate(self, size: int) -> None:
        """Makes the file `size` bytes long, zeros behind its end, and takes the space for it."""

    def truncate(self, size: int) -> None: ...
    def size(self) -> int: ...
    def close(self) -> None: ...


class Disk(Protocol):
    def create(self, name: str) -> File:
        """A new file, open for reading and writing; there must be none of that name."""

    def open(self, name: str) -> File: ...
    def names(self) -> list[str]: ...
    def rename(self, old: str, new: str) -> None:
        """Replaces `new` if it exists."""

    def remove(self, name: str) -> None: ...
    def sync_directory(self) -> None:
        """Creations, renames and removals so far survive a power cut."""

    def free_bytes(self) -> int: ...


class RealFile:
    """A file of the operating system."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, at: int, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        for first in range(0, len(buffers), _BUFFERS_MAX):
            some = buffers[first : first + _BUFFERS_MAX]
            size = sum(len(buffer) for buffer in some)
            written = os.pwritev(self._descriptor, some, at)
            at += written
            if written < size:
                at = self._write_rest(at, b"".join(some)[written:])

    def _write_rest(self, at: int, rest: bytes) -> int:
        """The disk took a part: a signal, or its end, which the next attempt tells."""
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
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


def _sync(descriptor: int) -> None:
    if _FULL_SYNC is None:
        os.fdatasync(descriptor)
    else:
        fcntl.fcntl(descriptor, _FULL_SYNC)


def make_directory(directory: Path, mode: int = 0o777) -> None:
    """Makes a directory that is missing, and its parents; each entry survives a power cut. The
    `mode` is that of the last one. Raises `OSError`."""
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
    """A directory of the operating system; made if it is missing.

    It holds some spare descriptors: when clients have taken all that the process may have, the
    log still rolls.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._spare: list[int] = []
        make_directory(directory, mode=0o700)
        self._here = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        self._refill()

    def __del__(self) -> None:
        for descriptor in (self._here, *self._spare):
            os.close(descriptor)

    def create(self, name: str) -> RealFile:
        return RealFile(self._open(name, os.O_CREAT | os.O_EXCL))

    def open(self, name: str) -> RealFile:
        return RealFile(self._open(name, 0))

    def _open(self, name: str, flags: int) -> int:
        flags |= os.O_RDWR | os.O_CLOEXEC
        return self._spared(lambda: os.open(self._directory / name, flags, 0o600))

    def _spared(self, call: Callable[[], Result]) -> Result:
        """Gives up a spare descriptor if there is no other."""
        try:
            result = call()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._spare:
                raise
            os.close(self._spare.pop())
            return call()
        self._refill()
        return result

    def _refill(self) -> None:
        while len(self._spare) < SPARE_DESCRIPTORS:
            try:
                self._spare.append(os.dup(self._here))
            except OSError:
                return  # all are taken again; those that are left will do

    def names(self) -> list[str]:
        return sorted(self._spared(lambda: os.listdir(self._directory)))

    def rename(self, old: str, new: str) -> None:
        os.replace(self._directory / old, self._directory / new)

    def remove(self, name: str) -> None:
        os.unlink(self._directory / name)

    def sync_directory(self) -> None:
        os.fsync(self._here)

    def free_bytes(self) -> int:
        found = os.fstatvfs(self._here)
        return found.f_bavail * found.f_frsize

    def total_bytes(self) -> int:
        """Of the file system."""
        found = os.fstatvfs(self._here)
        return found.f_blocks * found.f_frsize
