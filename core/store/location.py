"""Locations from which the store reads batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..message.batch import BatchLocation

if TYPE_CHECKING:
    from .overflow import OverflowFile


class RecordLocation(BatchLocation):
    """The location of a record of the log."""

    __slots__ = ("offset", "segment", "size")

    def __init__(self, segment: int, offset: int, size: int) -> None:
        self.segment = segment
        self.offset = offset
        self.size = size


class OverflowLocation(BatchLocation):
    """A location in an overflow file, which stays open as long as something refers to it."""

    __slots__ = ("file", "offset", "size")

    def __init__(self, file: OverflowFile, offset: int, size: int) -> None:
        self.file = file
        self.offset = offset
        self.size = size


BEING_WRITTEN: Final = BatchLocation()
"""The location of a batch that is being written to an overflow file."""
