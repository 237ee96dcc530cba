"""Cuts of the log: the files that hold everything up to one moment, to be linked and copied.

A cut ends the open segment, so all that was appended before is in earlier files, and nothing later
is. These files can be listed when the cut's commit is done. Until the block of its `with` ends, the
store begins no checkpoint and goes on with none: one that saw later changes must not be copied with
earlier segments, and a checkpoint removes files.
"""

from __future__ import annotations

from typing import Self

from .checkpoint import SUFFIX as STATE_SUFFIX
from .checkpointer import Checkpointer
from .disk import Disk
from .log import Log
from .segment import segment_name


class LogCut:
    """A point of the log to copy up to: all that was appended before it."""

    def __init__(self, disk: Disk, log: Log, checkpointer: Checkpointer) -> None:
        checkpointer.suspend()
        log.submit()
        log.roll()
        log.request()
        self._disk = disk
        self._checkpointer = checkpointer
        self._end = log.open_number
        self._segments = {
            segment.name for segment in log.segments.values() if segment.number < self._end
        }

    def names(self) -> list[str]:
        """Returns the names of the files that a start needs, once the cut is committed. A file that
        is gone when it is linked was removed by a checkpoint that was written meanwhile, and its
        name is in the next list."""
        end = segment_name(self._end)
        return [
            name
            for name in self._disk.names()
            if name in self._segments or (name.endswith(STATE_SUFFIX) and name < end)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Lets the store make checkpoints and remove files again."""
        self._checkpointer.release()
