"""The files of staged rows, a folder for each transaction, and how much of the disk they take.

One thread at a time uses this: a piece that is replaced, or removed while it is written, is counted
once.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ...core.store.disk import FULL, make_directory
from ..errors import HubError

PIECE_MIN_BYTES = 16_384
"""What a piece counts at least, so that tiny ones don't take all the files of a disk."""
_MODE = 0o700


class StagingFull(HubError):
    """There is no room for more staged rows."""

    status = 507
    title = "Too many staged rows"
    retry_after_s = 30


class StagedFiles:
    """Folders below a directory; the name of each begins with its owner's, up to a dash.

    An owner has at most as much as is left free, so there is room for one who comes later. Raises
    `OSError` where the disk does.
    """

    def __init__(self, directory: Path, max_bytes: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._bytes: Counter[str] = Counter()

    def count(self) -> None:
        """Counts what an earlier process has left."""
        for folder in _entries(self._directory):
            self._bytes[_owner(folder.name)] += _size_bytes(folder)

    def put(self, folder_name: str, name: str, data: bytes) -> None:
        """Stores a file, on disk when it returns; replaces an earlier one. Raises `StagingFull`."""
        owner, folder = _owner(folder_name), self._directory / folder_name
        path = folder / name
        size = max(PIECE_MIN_BYTES, len(data))
        more = size - (_file_bytes(path) if path.exists() else 0)
        self._require_room(owner, more)
        try:
            make_directory(folder, _MODE)
            _write(path, data)
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise StagingFull(f"the disk is full: {error}", field="max_staged_bytes") from error
        self._bytes[owner] += more

    def remove(self, folder_name: str) -> None:
        """Removes a folder with all its files, if there is one."""
        folder = self._directory / folder_name
        if folder.exists():
            size = _size_bytes(folder)
            shutil.rmtree(folder)
            self._bytes[_owner(folder_name)] -= size

    def remove_older(self, before_s: float) -> None:
        """Removes folders to which nothing was added since that time."""
        for folder in _entries(self._directory):
            if folder.stat().st_mtime < before_s:
                self.remove(folder.name)

    def _require_room(self, owner: str, more: int) -> None:
        has, limit = self._bytes[owner], self._max_bytes
        free = limit - self._bytes.total()
        if more > 0 and has + more > free - more:
            raise StagingFull(
                f"{has} bytes of this user are staged and {free} of {limit} are free; {more} more "
                "exceed the quota, which leaves as much free as the user has; commit or abort "
                "transactions",
                field="max_staged_bytes", limit=str(limit),
            )  # fmt: skip


def _owner(folder_name: str) -> str:
    return folder_name.partition("-")[0]


def _entries(directory: Path) -> Iterator[Path]:
    return directory.iterdir() if directory.exists() else iter(())


def _size_bytes(folder: Path) -> int:
    return sum(map(_file_bytes, folder.iterdir()))


def _file_bytes(path: Path) -> int:
    return max(PIECE_MIN_BYTES, path.stat().st_size)


def _write(path: Path, data: bytes) -> None:
    """Writes and syncs a file beside an earlier one, and then replaces that."""
    written = path.with_name(f"{path.name}.part")
    try:
        with written.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        written.rename(path)
    except BaseException:
        written.unlink(missing_ok=True)
        raise
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
