"""Reads files with read errors: zeros replace what can't be read, which no checksum accepts.

A read error costs the disk blocks that it concerns. They may be readable later, so nothing is cut
off or deleted because of it.
"""

from __future__ import annotations

from .disk import File

BLOCK_BYTES = 4_096
FAILURES_MAX = 64
"""After so many errors the rest is not read: a disk may try for seconds before it reports one."""


def salvage(file: File, at: int, size: int) -> tuple[bytes, OSError | None]:
    """Reads as `File.read`, with zeros for what can't be read; returns the first error too."""
    try:
        return file.read(at, size), None
    except OSError as error:
        return _Salvage(file).read(at, min(size, max(0, file.size() - at))), error


def reason_of(error: OSError) -> str:
    """The reason of an error, without the file's name, for log lines that have it."""
    return error.strerror or str(error)


class _Salvage:
    """Reads by halving what can't be read down to a disk block."""

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
