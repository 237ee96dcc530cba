"""Bytes of the log that are no record are copied aside before anything goes on without them."""

from __future__ import annotations

import logging

from .disk import FULL, Disk
from .salvage import salvage
from .segment import segment_name

logger = logging.getLogger(__name__)

SUFFIX = ".damaged"


def set_aside(disk: Disk, segment: int, offset: int, data: memoryview) -> bool:
    """Keeps a copy of the bytes at this place as a file of their own.

    False if there is no space for it: they must stay where they are then. Raises `OSError`.
    """
    name = damaged_name(segment, offset)
    if name in disk.names():
        if _read(disk, name) == data:
            return True
        disk.remove(name)  # a copy that was cut short
    try:
        _write(disk, name, data)
    except OSError as error:
        if error.errno not in FULL:
            raise
        if name in disk.names():
            disk.remove(name)
        logger.error("no space for %s; the bytes stay in %s", name, segment_name(segment))
        return False
    return True


def damaged_name(segment: int, offset: int) -> str:
    return f"{segment:012d}-{offset}{SUFFIX}"


def set_aside_files(disk: Disk) -> dict[str, int]:
    """The copies that there are, by name, with their sizes in bytes. Raises `OSError`."""
    return {name: _size(disk, name) for name in disk.names() if name.endswith(SUFFIX)}


def _size(disk: Disk, name: str) -> int:
    file = disk.open(name)
    try:
        return file.size()
    finally:
        file.close()


def _read(disk: Disk, name: str) -> bytes:
    file = disk.open(name)
    try:
        return salvage(file, 0, file.size())[0]
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
