"""Damage that recovery finds: invalid bytes, and files that can't be read."""

from __future__ import annotations

import logging

from ..counted import counted
from .damaged_bytes import damaged_name, set_aside
from .disk import Disk
from .segment import Segment

logger = logging.getLogger(__name__)


class Damage:
    """The damage in one directory. Damaged bytes are copied aside, unless `read_only`.

    `set_aside` has the names of the copies; `unreadable` and `lost` have, by segment number, the
    reason why a segment can't be read, and how many of its records are lost.
    """

    def __init__(self, disk: Disk, *, read_only: bool = False) -> None:
        self._disk = disk
        self._read_only = read_only
        self.set_aside: list[str] = []
        self.unreadable: dict[int, str] = {}
        self.lost: dict[int, str] = {}

    @property
    def is_damaged(self) -> bool:
        """Whether something could not be read."""
        return bool(self.set_aside or self.unreadable or self.lost)

    def add_gap(self, segment: Segment, start: int, data: memoryview) -> None:
        """Copies bytes aside that are no record, though a record follows them."""
        if not any(data):
            return
        name = damaged_name(segment.number, start)
        logger.error(
            "%s: %s at offset %d %s %s; all other data is served",
            segment.name, counted(len(data), "damaged byte"), start,
            "will be copied at the next start to" if self._read_only else "copied to", name,
        )  # fmt: skip
        self.set_aside.append(name)
        if not self._read_only:
            set_aside(self._disk, segment.number, start, data)

    def add_end(self, segment: Segment, data: memoryview) -> bool:
        """Copies the bytes after the last record aside; returns whether they may be cut off. An
        interrupted write looks like a damaged record."""
        start = segment.end
        size = len(bytes(data[start:]).rstrip(b"\0"))
        if not size or self._read_only:
            return True
        logger.warning(
            "%s: no valid record in %s at offset %d (end of file); copied to %s",
            segment.name, counted(size, "byte"), start, damaged_name(segment.number, start),
        )  # fmt: skip
        return set_aside(self._disk, segment.number, start, data[start : start + size])

    def fence(self, segment: Segment, reason: str) -> None:
        """Keeps the file of a segment that the disk can't read in places as it is."""
        segment.is_fenced = True
        self.unreadable[segment.number] = reason
        logger.error(
            "%s: partly unreadable: %s; all other data is served, and the file is retained",
            segment.name, reason,
        )  # fmt: skip
