"""Shows messages of a queue without taking them.

Nothing changes by it: not the order, nor what is flagged as redelivered, nor what is in memory.
Positions count from the front of the queue; those of a stream are offsets. While others consume,
messages may be missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ..message.model import Message
from ..message.queue_entry import MessageRange, PagedOut
from ..queue.backlog_queue import BacklogQueue
from ..queue.cursor import Cursor
from ..queue.queue import Queue
from ..queue.stream import StreamQueue
from .reader import MessageReader

if TYPE_CHECKING:
    from ..broker import Broker
    from ..slices import Steps
    from ..store.port import Browsed, Store

PARTS_AT_ONCE: Final = 200
"""Parts of a backlog that one step looks at."""


class PeekedMessage(NamedTuple):
    """A message with its position in the queue, or its offset in the stream."""

    position: int
    message: Message


Peeked = list[PeekedMessage]


def peek(
    broker: Broker,
    queue: Queue,
    start: int,
    count: int,
    max_bytes: int,
    done: Callable[[Peeked], None],
) -> None:
    """Calls `done`, at once or later, with up to `count` ready messages from position `start` on;
    with fewer if their bodies have more than `max_bytes`. A negative `start` counts from the end.
    """
    wanted = _Wanted(count, max_bytes, done)
    if isinstance(queue, StreamQueue):
        _StreamPeek(broker, queue, wanted, start).step()
    else:
        assert isinstance(queue, BacklogQueue)  # There is no third kind.
        _BacklogPeek(broker, queue, wanted).begin(start)


class _Wanted:
    """The messages found so far."""

    __slots__ = ("_bytes_left", "_done", "_reader", "count_left", "found")

    def __init__(self, count: int, max_bytes: int, done: Callable[[Peeked], None]) -> None:
        self.count_left = count
        self._bytes_left = max_bytes
        self._done = done
        self._reader = MessageReader()
        self.found: Peeked = []

    @property
    def is_complete(self) -> bool:
        return self.count_left <= 0 or self._bytes_left <= 0

    def add(self, position: int, messages: MessageRange) -> None:
        """Adds the messages of a range, the first of which is at this position."""
        for at in range(messages.low, messages.high):
            if self.is_complete:
                return
            ((_, message),) = self._reader.read_positions(messages, (at,))
            self.found.append(PeekedMessage(position + at - messages.low, message))
            self.count_left -= 1
            self._bytes_left -= len(message.body)

    def end(self) -> None:
        self._done(self.found)


class _Piece(NamedTuple):
    """`size` messages of a part of the backlog, from one on; the first is at `position` of
    the queue."""

    position: int
    part: MessageRange | PagedOut
    skipped: int
    size: int


class _BacklogPeek:
    """Looks at the ready messages of a classic or quorum queue."""

    def __init__(self, broker: Broker, queue: BacklogQueue, wanted: _Wanted) -> None:
        self._store = broker.store
        self._slices = broker.slices
        self._queue = queue
        self._wanted = wanted
        self._pieces: deque[_Piece] = deque()

    def begin(self, start: int) -> None:
        low = max(0, self._queue.ready_count + start) if start < 0 else start
        self._slices.start(self._choose(low, low + self._wanted.count_left))

    def _choose(self, low: int, high: int) -> Steps:
        """Notes which parts have the messages from position `low` to `high - 1`."""
        at = 0
        for number, part in enumerate(self._queue.backlog.parts()):
            count = part.count
            first, last = max(low - at, 0), min(high - at, count)
            if first < last:
                held = part
                if isinstance(part, MessageRange):  # Consuming changes a range of the backlog.
                    held = MessageRange(part.entry, part.low, part.high, part.redelivered)
                self._pieces.append(_Piece(at + first, held, first, last - first))
            at += count
            if at >= high:
                break
            if number % PARTS_AT_ONCE == PARTS_AT_ONCE - 1:
                yield None
        self._read()

    def _read(self) -> None:
        """Reads the next pieces, up to one that is on disk."""
        while self._pieces and not self._wanted.is_complete:
            piece = self._pieces.popleft()
            part = piece.part
            if isinstance(part, PagedOut):
                _PagedOutPeek(self._store, part, piece, self._wanted, self._read).step()
                return
            batch = part.entry.batch
            if not batch.resident:
                self._store.batches.fetch(batch, partial(self._fetched, piece, part))
                return
            self._add(piece, part)
        self._wanted.end()

    def _fetched(self, piece: _Piece, part: MessageRange) -> None:
        batch = part.entry.batch
        if batch.resident:  # Otherwise it can't be read; the store has logged that.
            self._add(piece, part)
            self._store.batches.evict(batch)
        self._read()

    def _add(self, piece: _Piece, part: MessageRange) -> None:
        low = part.low + piece.skipped
        shown = MessageRange(part.entry, low, low + piece.size, part.redelivered)
        self._wanted.add(piece.position, self._queue.with_headers(shown))


class _PagedOutPeek:
    """Looks at messages of a paged-out range, which stays where it is."""

    def __init__(
        self,
        store: Store,
        part: PagedOut,
        piece: _Piece,
        wanted: _Wanted,
        done: Callable[[], None],
    ) -> None:
        self._store = store
        self._part = part
        self._wanted = wanted
        self._done = done
        self._at = piece.skipped
        self._end = piece.skipped + piece.size
        self._shift = piece.position - piece.skipped

    def step(self) -> None:
        if self._at >= min(self._end, self._part.count) or self._wanted.is_complete:
            self._done()
        else:
            self._store.browser.browse(self._part, self._at, self._browsed, unsettled=True)

    def _browsed(self, read: Browsed | None) -> None:
        if read is None or read.end <= self._at:  # It was consumed or paged in meanwhile.
            self._done()
            return
        for at, messages in read.ranges:
            high = min(messages.high, messages.low + self._end - at)
            shown = MessageRange(messages.entry, messages.low, high, messages.redelivered)
            self._wanted.add(at + self._shift, shown)
        self._at = read.end
        self.step()


class _StreamPeek:
    """Reads a stream from an offset on."""

    def __init__(self, broker: Broker, queue: StreamQueue, wanted: _Wanted, start: int) -> None:
        log = queue.log
        offset = max(log.first, log.committed + start if start < 0 else start)
        self._wanted = wanted
        self._cursor = Cursor(log, broker.store, offset, self.step)

    def step(self) -> None:
        """Reads until enough is found, or until messages have to be read from disk."""
        while not self._wanted.is_complete:
            messages = self._cursor.next()
            if messages is None:
                if self._cursor.is_reading:
                    return
                break
            high = min(messages.high, messages.low + self._wanted.count_left)
            self._wanted.add(self._cursor.offset, MessageRange(messages.entry, messages.low, high))
            self._cursor.offset += high - messages.low
        self._cursor.end()
        self._wanted.end()
