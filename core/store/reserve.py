"""Disk space reserved for a full disk: it can't drain unless acks and dead letters are written."""

from __future__ import annotations

import logging
from typing import Final

from .disk import FULL, Disk

logger = logging.getLogger(__name__)

NAME: Final = "reserve"


class Reserve:
    """A file of zeros that is removed when the disk is full. With 0 bytes none is created, but one
    that an earlier process created is used."""

    def __init__(self, disk: Disk, size: int) -> None:
        self._disk = disk
        self._size = size
        self._is_allocated = False
        self._is_used = False
        self.take()
        # An earlier process may have used it. A disk that only has no room for it yet is not full.
        self._is_used = not self._is_allocated and disk.free_bytes() < size

    @property
    def is_used(self) -> bool:
        """Whether it is in use, and there is not enough space to allocate it again."""
        return self._is_used

    def take(self) -> None:
        """Allocates the space again, if twice as much is free. A file that an earlier process
        created stays: on a full disk it could not be created again."""
        if self._is_allocated:
            return
        found = self._found_bytes()
        if found < self._size and self._disk.free_bytes() + found >= 2 * self._size:
            self._remove()
            self._is_allocated = self._allocate()
        else:
            self._is_allocated = found > 0
        self._is_used &= not self._is_allocated

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

    def use(self) -> bool:
        """Removes the file; False if there is none."""
        if not self._is_allocated:
            return False
        self._is_allocated, self._is_used = False, True
        self._remove()
        logger.warning("disk full: using reserved space")
        return True

    def _remove(self) -> None:
        if NAME in self._disk.names():
            self._disk.remove(NAME)
