"""Copies of damaged bytes, written to files of their own before the log is used without them."""

from __future__ import annotations

import logging
from typing import Final

from .disk import FULL, Disk
from .salvage import salvage_file
from .segment import segment_name

logger = logging.getLogger(__name__)

SUFFIX: Final = ".damaged"


def set_aside(disk: Disk, segment: int, offset: int, data: memoryview) -> bool:
    """Copies bytes at an offset of a segment to a file of their own.

    Returns False if there is no space for it: the bytes must not be cut off then. Raises `OSError`.
    """
    name = damaged_name(segment, offset)
    if name in disk.names():
        if salvage_file(disk, name)[0] == data:
            return True
        disk.remove(name)  # An incomplete copy.
    try:
        _write(disk, name, data)
    except OSError as error:
        if error.errno not in FULL:
            raise
        if name in disk.names():
            disk.remove(name)
        logger.error("no space for %s; the damaged bytes remain in %s", name, segment_name(segment))
        return False
    return True


def damaged_name(segment: int, offset: int) -> str:
    return f"{segment:012d}-{offset}{SUFFIX}"


def set_aside_files(disk: Disk) -> dict[str, int]:
    """Returns the names of all copies, with their sizes in bytes. Raises `OSError`."""
    return {name: _size(disk, name) for name in disk.names() if name.endswith(SUFFIX)}


def _size(disk: Disk, name: str) -> int:
    file = disk.open(name)
    try:
        return file.size()
    finally:
        file.close()


def _write(disk: Disk, name: str, data: memoryview) -> None:
    file = disk.create(name)
    try:
        file.write(0, [data])
        file.sync()
    finally:
        file.close()
    disk.sync_directory()
