"""Where transient messages go when memory is short: files without a name, never synced.

A file ends when nothing that was written to it is wanted any more: each place keeps it open.
"""

from __future__ import annotations

from itertools import count

from .disk import Disk, File
from .record import Buffer

FILE_BYTES = 64 * 1024 * 1024
PREFIX = "overflow-"
_names = count(1)


def remove_left(disk: Disk) -> None:
    """Those whose process was killed before it had taken their name away. Raises `OSError`."""
    for name in disk.names():
        if name.startswith(PREFIX):
            disk.remove(name)


class OverflowFile:
    """An open file that has no name any more."""

    def __init__(self, disk: Disk) -> None:
        name = f"{PREFIX}{next(_names)}"
        self.end = 0
        self._file: File = disk.create(name)
        disk.remove(name)

    def append(self, buffers: list[Buffer]) -> tuple[int, int]:
        """Gives offset and size. Raises `OSError`, and then nothing was taken."""
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
    """Appends to one file after the other."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._file: OverflowFile | None = None

    def append(self, buffers: list[Buffer]) -> tuple[OverflowFile, int, int]:
        """Raises `OSError`."""
        if self._file is None or self._file.end > FILE_BYTES:
            self._file = OverflowFile(self._disk)
        return self._file, *self._file.append(buffers)
