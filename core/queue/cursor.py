"""Reads the messages of a stream from an offset on, and finds an offset by time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..message.queue_entry import MessageRange, PagedOut
from .read_ahead import ReadAhead

if TYPE_CHECKING:
    from ..message.batch import Batch
    from ..store.port import Browsed, Store
    from .stream_chunks import StreamChunk
    from .stream_log import StreamLog


class Cursor:
    """Reads the messages of a stream from `offset` on.

    `is_reading` while messages are read from disk; `wake` is called when that is done. With `early`
    messages that are not committed yet are read too. `shared` are the entries of other cursors.
    """

    __slots__ = ("_ahead", "_early", "_log", "_shared", "_store", "_wake", "is_reading", "offset")

    def __init__(
        self,
        log: StreamLog,
        store: Store,
        offset: int,
        wake: Callable[[], None],
        *,
        early: bool = False,
        shared: ReadAhead | None = None,
    ) -> None:
        self._log = log
        self._shared = shared or ReadAhead()
        self._store = store
        self._wake = wake
        self._early = early
        self._ahead: deque[tuple[int, MessageRange]] = deque()
        """Ranges read from disk, each with the offset of its first message."""
        self.is_reading = False
        self.offset = offset

    def next(self) -> MessageRange | None:
        """Returns the range at `offset`; the caller advances `offset` by what it uses.

        None at the end of the stream, or while messages are read from disk.
        """
        log = self._log
        if self.offset < log.first:
            self.offset = log.first
        end = log.end if self._early else log.committed
        if self.offset >= end:
            self.release_read_ahead()
            return None
        if self.is_reading:
            return None
        messages = self._from_ahead() or self._from_log()
        room = end - self.offset
        if messages is None or messages.count <= room:
            return messages
        return MessageRange(messages.entry, messages.low, messages.low + room) if room > 0 else None

    def release_read_ahead(self) -> None:
        """Frees ranges read ahead; they are read again when they are needed."""
        while self._ahead:
            self._release_first()

    def end(self) -> None:
        """Frees what it has; what is being read is not shared any more."""
        self.release_read_ahead()
        self._shared = ReadAhead()

    def _release_first(self) -> None:
        offset, messages = self._ahead.popleft()
        self._shared.release(offset - messages.low, messages.entry)

    def _hold(self, offset: int, messages: MessageRange) -> None:
        entry = self._shared.acquire(offset - messages.low, messages.entry)
        self._ahead.append((offset, MessageRange(entry, messages.low, messages.high)))

    def _from_ahead(self) -> MessageRange | None:
        ahead = self._ahead
        while ahead and ahead[0][0] + ahead[0][1].count <= self.offset:
            self._release_first()
        if not ahead:
            return None
        at, messages = ahead[0]
        if not messages.entry.batch.resident:
            # It was evicted again, and compaction may have moved its record since.
            self.release_read_ahead()
            return None
        if at > self.offset:
            self.offset = at  # Messages between could not be read; the store has logged that.
        return MessageRange(messages.entry, messages.low + self.offset - at, messages.high)

    def _from_log(self) -> MessageRange | None:
        chunk = self._log.chunks.at(self.offset)
        content = chunk.content
        at = self.offset - chunk.offset
        if isinstance(content, PagedOut):
            entry = self._shared.get(self.offset)
            if entry is not None:
                self._hold(self.offset, MessageRange(entry, 0, entry.count))
                return self._from_ahead()
            self.is_reading = True
            self._store.browser.browse(content, at, partial(self._browsed, chunk.offset))
            return None
        if not content.entry.batch.resident:
            self._fetch(content.entry.batch, chunk)
            return None
        return MessageRange(content.entry, content.low + at, content.high)

    def _browsed(self, base: int, found: Browsed | None) -> None:
        """Takes the messages read of a paged-out range that begins at offset `base`."""
        self.is_reading = False
        if found is not None:
            for at, messages in found.ranges:
                self._hold(base + at, messages)
            if not found.ranges:
                self.offset = max(self.offset, base + found.end)
        self._wake()

    def _fetch(self, batch: Batch, chunk: StreamChunk) -> None:
        self.is_reading = True
        location, behind = batch.location, chunk.end

        def fetched() -> None:
            self.is_reading = False
            if not batch.resident and batch.location == location:
                self.offset = max(self.offset, behind)  # It can't be read.
            self._wake()

        self._store.batches.fetch(batch, fetched)


class Search:
    """Finds the first message that arrived at `at_ms` or later, by binary search.

    `found` is called with its offset, at once or after reads from disk.
    """

    def __init__(
        self, log: StreamLog, store: Store, at_ms: int, found: Callable[[int], None]
    ) -> None:
        self._low, self._high = log.first, log.committed
        self._log = log
        self._store = store
        self._at_ms = at_ms
        self._found = found
        self._cursor: Cursor | None = None
        """Reads the message at the middle."""

    def step(self) -> None:
        """Continues the search until a message has to be read from disk."""
        while self._low < self._high:
            middle = (self._low + self._high) // 2
            cursor = self._cursor or Cursor(self._log, self._store, middle, self.step)
            self._cursor = cursor
            messages = cursor.next()
            if messages is None and cursor.is_reading:
                return
            self._cursor = None
            if messages is None or messages.entry.batch.arrived_ms >= self._at_ms:
                self._high = middle  # Or nothing behind it can be read.
            else:
                self._low = cursor.offset + 1
        self._found(self._low)
