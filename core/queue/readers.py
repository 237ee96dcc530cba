"""The consumers of a stream, each reading at an offset of its own.

Consumers that may have messages to read are scheduled. One that has read everything is scheduled at
the next commit, one that waits for the disk or has no credit when that changes: so a turn only
visits consumers that get messages.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from .consumer import Consumer, ConsumerRing
from .read_ahead import ReadAhead

if TYPE_CHECKING:
    from .cursor import Cursor
    from .stream_spec import StreamFilter


class StreamReader:
    """A consumer of a stream; `cursor` is None until its first offset is known."""

    __slots__ = ("consumer", "cursor", "filter", "is_scheduled")

    def __init__(self, consumer: Consumer, message_filter: StreamFilter | None) -> None:
        self.consumer = consumer
        self.cursor: Cursor | None = None
        self.filter = message_filter
        self.is_scheduled = False


class ReaderRing(ConsumerRing):
    """Readers by consumer; `scheduled` are dispatched next, `at_end` have read everything."""

    __slots__ = ("at_end", "read_ahead", "readers", "scheduled")

    def __init__(self) -> None:
        super().__init__()
        self.readers: dict[Consumer, StreamReader] = {}
        self.scheduled: deque[StreamReader] = deque()
        self.at_end: dict[StreamReader, None] = {}
        self.read_ahead = ReadAhead()

    def add_reader(self, reader: StreamReader) -> None:
        """Adds a reader and its consumer."""
        self.readers[reader.consumer] = reader
        self.add(reader.consumer)

    def remove(self, consumer: Consumer) -> None:
        del self.members[consumer]
        consumer.open = False
        reader = self.readers.pop(consumer)
        self.at_end.pop(reader, None)
        if reader.cursor is not None:
            reader.cursor.end()
        if reader.is_scheduled:
            self.scheduled.remove(reader)

    def open(self, consumer: Consumer) -> None:
        consumer.open = True
        self.schedule(self.readers[consumer])

    def ready_consumers(self) -> deque[Consumer] | None:
        return None

    def schedule(self, reader: StreamReader) -> None:
        """Schedules a reader that may have messages to read, unless it was removed meanwhile."""
        if not reader.is_scheduled and reader.consumer in self.readers:
            reader.is_scheduled = True
            self.scheduled.append(reader)

    def pop_next(self) -> StreamReader:
        """Removes and returns the next scheduled reader."""
        reader = self.scheduled.popleft()
        reader.is_scheduled = False
        return reader

    def resume_readers(self) -> None:
        """Schedules the readers that had read everything, after a commit."""
        readers, self.at_end = self.at_end, {}
        for reader in readers:
            self.schedule(reader)

    def can_take_one(self) -> bool:
        return any(reader.consumer.credit() > 0 for reader in self.at_end)

    def release_read_ahead(self) -> None:
        """Frees what was read ahead, when memory is short."""
        for reader in self.readers.values():
            if reader.cursor is not None:
                reader.cursor.release_read_ahead()
