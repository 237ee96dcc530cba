"""Reads files with read errors: zeros, which fail every checksum, replace unreadable bytes.

A read error affects whole disk blocks. They may be readable later, so nothing is cut off or deleted
because of it.
"""

from __future__ import annotations

from typing import Final

from .disk import Disk, File

BLOCK_BYTES: Final = 4_096
FAILURES_MAX: Final = 64
"""After this many errors the rest is not read: a disk may take seconds to report each."""


def salvage(file: File, at: int, size: int) -> tuple[bytes, OSError | None]:
    """Reads as `File.read`, with zeros for unreadable bytes; also returns the first error."""
    try:
        return file.read(at, size), None
    except OSError as error:
        return _Salvage(file).read(at, min(size, max(0, file.size() - at))), error


def salvage_file(disk: Disk, name: str) -> tuple[bytes, OSError | None]:
    """Reads a whole file as `salvage` does. Raises `OSError` if it can't be opened."""
    file = disk.open(name)
    try:
        return salvage(file, 0, file.size())
    finally:
        file.close()


def reason_of(error: OSError) -> str:
    """Returns the reason of an error without the file's name, for log lines that have the name."""
    return error.strerror or str(error)


class _Salvage:
    """Reads a range by halving unreadable ranges, down to a disk block."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._failures = 0

    def read(self, at: int, size: int) -> bytes:
        if self._failures >= FAILURES_MAX:
            return bytes(size)
        try:
            return self._file.read(at, size)
        except OSError:
            self._failures += 1
        middle = (at + size // 2) // BLOCK_BYTES * BLOCK_BYTES
        if middle <= at:
            middle += BLOCK_BYTES
        if middle >= at + size:
            return bytes(size)
        return self.read(at, middle - at) + self.read(middle, at + size - middle)
