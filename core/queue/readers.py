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

    __slots__ = ("consumer", "cursor", "filter", "in_line")

    def __init__(self, consumer: Consumer, wanted: Filter | None) -> None:
        self.consumer = consumer
        self.cursor: Cursor | None = None
        self.filter = wanted
        self.in_line = False


class ReaderRing(ConsumerRing):
    """Readers by consumer; `waiting` are in line, `done` have read everything."""

    __slots__ = ("done", "readers", "waiting")

    def __init__(self) -> None:
        super().__init__()
        self.readers: dict[Consumer, Reader] = {}
        self.waiting: deque[Reader] = deque()
        self.done: dict[Reader, None] = {}

    def admit(self, reader: Reader) -> None:
        """A new one."""
        self.readers[reader.consumer] = reader
        self.add(reader.consumer)

    def remove(self, consumer: Consumer) -> None:
        del self.members[consumer]
        consumer.open = False
        reader = self.readers.pop(consumer)
        self.done.pop(reader, None)
        if reader.in_line:
            self.waiting.remove(reader)

    def open(self, consumer: Consumer) -> None:
        consumer.open = True
        self.line_up(self.readers[consumer])

    def line(self) -> deque[Consumer] | None:
        return None

    def line_up(self, reader: Reader) -> None:
        """There may be something for it; one that has gone meanwhile is none any more."""
        if not reader.in_line and reader.consumer in self.readers:
            reader.in_line = True
            self.waiting.append(reader)

    def next(self) -> Reader:
        """The first in line, who leaves it."""
        reader = self.waiting.popleft()
        reader.in_line = False
        return reader

    def news(self) -> None:
        """There is something for those who had read everything."""
        done, self.done = self.done, {}
        for reader in done:
            self.line_up(reader)

    def can_take_one(self) -> bool:
        return any(reader.consumer.credit() > 0 for reader in self.done)

    def let_go(self) -> None:
        """Memory is short."""
        for reader in self.readers.values():
            if reader.cursor is not None:
                reader.cursor.let_go()
