"""Disk space reserved for a full disk: acks and dead-lettering must go on, or it can't drain."""

from __future__ import annotations

import logging

from .disk import FULL, Disk

logger = logging.getLogger(__name__)

NAME = "reserve"


class Reserve:
    """A file of zeros that is removed when the disk is full. With 0 bytes none is made, but one
    that an earlier process made is used."""

    def __init__(self, disk: Disk, size: int) -> None:
        self._disk = disk
        self._size = size
        self._held = False
        self._given = False
        self.take()
        # An earlier process may have given it up. A disk that only has no room for it yet is not
        # full.
        self._given = not self._held and disk.free_bytes() < size

    @property
    def is_given(self) -> bool:
        """Whether it is used, and there is not enough space to allocate it again."""
        return self._given

    def take(self) -> None:
        """Allocates the space again, if twice as much is free. A file that an earlier process made
        stays: on a full disk it could not be made again."""
        if self._held:
            return
        found = self._found_bytes()
        if found < self._size and self._disk.free_bytes() + found >= 2 * self._size:
            self._remove()
            self._held = self._allocate()
        else:
            self._held = found > 0
        self._given &= not self._held

    def _found_bytes(self) -> int:
        if NAME not in self._disk.names():
            return 0
        file = self._disk.open(NAME)
        try:
            return file.size()
        finally:
            file.close()

    def _allocate(self) -> bool:
        try:
            file = self._disk.create(NAME)
            try:
                file.allocate(self._size)
            finally:
                file.close()
        except OSError as error:
            if error.errno not in FULL:
                raise
            self._remove()
            return False
        return True

    def give(self) -> bool:
        """Removes the file; False if there is none."""
        if not self._held:
            return False
        self._held, self._given = False, True
        self._remove()
        logger.warning("the disk is full: its reserve is used")
        return True

    def _remove(self) -> None:
        if NAME in self._disk.names():
            self._disk.remove(NAME)
