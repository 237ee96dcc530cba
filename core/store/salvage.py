"""Reading past what can't be read: zeros stand in its place, which no checksum takes for a record.

An error of reading costs the blocks that it concerns. What was written there is still on the disk,
so nothing is cut off or deleted because of it.
"""

from __future__ import annotations

from .disk import File

BLOCK_BYTES = 4_096
FAILURES_MAX = 64
"""A disk may try for seconds before it gives up: after so many errors the rest is not asked for."""


def salvage(file: File, at: int, size: int) -> tuple[bytes, OSError | None]:
    """As `File.read`, and the first error if there were any."""
    try:
        return file.read(at, size), None
    except OSError as error:
        return _Salvage(file).read(at, min(size, max(0, file.size() - at))), error


def reason_of(error: OSError) -> str:
    """How people are told of it, who know the file already."""
    return error.strerror or str(error)


class _Salvage:
    """Halves what can't be read until it is a block."""

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
