"""Overflow files, for transient messages that are paged out: without a name, never synced.

A file is freed when no batch refers to it any more: each location keeps it open.
"""

from __future__ import annotations

from itertools import count
from typing import Final

from .disk import Disk, File
from .location import OverflowLocation
from .record import Buffer

FILE_BYTES: Final = 64 * 1024 * 1024
PREFIX: Final = "overflow-"
_names = count(1)


def remove_left(disk: Disk) -> None:
    """Removes files whose process was killed before it had unlinked them. Raises `OSError`."""
    for name in disk.names():
        if name.startswith(PREFIX):
            disk.remove(name)


class OverflowFile:
    """An open, unlinked file."""

    def __init__(self, disk: Disk) -> None:
        name = f"{PREFIX}{next(_names)}"
        self.end = 0
        self._file: File = disk.create(name)
        disk.remove(name)

    def append(self, buffers: list[Buffer]) -> tuple[int, int]:
        """Appends buffers; returns offset and size. Raises `OSError`; then nothing is appended."""
        at, size = self.end, sum(map(len, buffers))
        self._file.write(at, buffers)
        self.end = at + size
        return at, size

    def read(self, at: int, size: int) -> bytes:
        return self._file.read(at, size)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()


class Overflow:
    """Appends to overflow files, a new one after each `FILE_BYTES`."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._file: OverflowFile | None = None

    def append(self, buffers: list[Buffer]) -> OverflowLocation:
        """Appends buffers. Raises `OSError`."""
        if self._file is None or self._file.end > FILE_BYTES:
            self._file = OverflowFile(self._disk)
        return OverflowLocation(self._file, *self._file.append(buffers))
