"""The consumers of a stream: each reads for itself, from a place of its own.

Those for whom there may be something stand in a line. Who has read everything waits for the next
commit, who waits for the disk or has no credit comes back when that has changed: so a turn costs
what those cost that get something, and no more.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from .consumer import Consumer, ConsumerRing

if TYPE_CHECKING:
    from .cursor import Cursor
    from .stream_spec import Filter


class Reader:
    """What a stream knows of a consumer; `cursor` is None until its place has been found."""

    __slots__ = ("consumer", "cursor", "filter", "is_scheduled")

    def __init__(self, consumer: Consumer, wanted: Filter | None) -> None:
        self.consumer = consumer
        self.cursor: Cursor | None = None
        self.filter = wanted
        self.is_scheduled = False


class ReaderRing(ConsumerRing):
    """Readers by consumer; `waiting` are in line, `done` have read everything."""

    __slots__ = ("at_end", "readers", "scheduled")

    def __init__(self) -> None:
        super().__init__()
        self.readers: dict[Consumer, Reader] = {}
        self.scheduled: deque[Reader] = deque()
        self.at_end: dict[Reader, None] = {}

    def add_reader(self, reader: Reader) -> None:
        """A new one."""
        self.readers[reader.consumer] = reader
        self.add(reader.consumer)

    def remove(self, consumer: Consumer) -> None:
        del self.members[consumer]
        consumer.open = False
        reader = self.readers.pop(consumer)
        self.at_end.pop(reader, None)
        if reader.is_scheduled:
            self.scheduled.remove(reader)

    def open(self, consumer: Consumer) -> None:
        consumer.open = True
        self.schedule(self.readers[consumer])

    def ready_consumers(self) -> deque[Consumer] | None:
        return None

    def schedule(self, reader: Reader) -> None:
        """There may be something for it; one that has gone meanwhile is none any more."""
        if not reader.is_scheduled and reader.consumer in self.readers:
            reader.is_scheduled = True
            self.scheduled.append(reader)

    def pop_next(self) -> Reader:
        """The first in line, who leaves it."""
        reader = self.scheduled.popleft()
        reader.is_scheduled = False
        return reader

    def resume_readers(self) -> None:
        """There is something for those who had read everything."""
        done, self.at_end = self.at_end, {}
        for reader in done:
            self.schedule(reader)

    def can_take_one(self) -> bool:
        return any(reader.consumer.credit() > 0 for reader in self.at_end)

    def release_read_ahead(self) -> None:
        """Memory is short."""
        for reader in self.readers.values():
            if reader.cursor is not None:
                reader.cursor.release_read_ahead()
