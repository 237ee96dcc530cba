"""Reads the messages of a stream from an offset on, and finds an offset by time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..message.batch import MessageRange, PagedOut

if TYPE_CHECKING:
    from ..message.batch import Batch
    from ..store.port import Browsed, Store
    from .stream_log import StreamChunk, StreamLog


class Cursor:
    """Reads the messages of a stream from `offset` on.

    `is_reading` while messages are read from disk; `wake` is called when that is done. With `early`
    messages that are not committed yet are read too.
    """

    __slots__ = ("_ahead", "_early", "_log", "_store", "_wake", "is_reading", "offset")

    def __init__(
        self,
        log: StreamLog,
        store: Store,
        offset: int,
        wake: Callable[[], None],
        *,
        early: bool = False,
    ) -> None:
        self._log = log
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
        if self.is_reading or self.offset >= end:
            return None
        messages = self._from_ahead() or self._from_log()
        room = end - self.offset
        if messages is None or messages.count <= room:
            return messages
        return MessageRange(messages.entry, messages.low, messages.low + room) if room > 0 else None

    def release_read_ahead(self) -> None:
        """Frees ranges read ahead; they are read again when they are needed."""
        self._ahead.clear()

    def _from_ahead(self) -> MessageRange | None:
        ahead = self._ahead
        while ahead and ahead[0][0] + ahead[0][1].count <= self.offset:
            ahead.popleft()
        if not ahead:
            return None
        at, messages = ahead[0]
        if not messages.entry.batch.resident:
            # It was evicted again, and compaction may have moved its record since.
            ahead.clear()
            return None
        if at > self.offset:
            self.offset = at  # Messages between could not be read; the store has logged that.
        return MessageRange(messages.entry, messages.low + self.offset - at, messages.high)

    def _from_log(self) -> MessageRange | None:
        piece = self._log.chunk_at(self.offset)
        held = piece.content
        if isinstance(held, PagedOut):
            self.is_reading = True
            at = self.offset - piece.offset
            self._store.browse(held, at, partial(self._browsed, piece.offset))
            return None
        if not held.entry.batch.resident:
            self._fetch(held.entry.batch, piece)
            return None
        return MessageRange(held.entry, held.low + self.offset - piece.offset, held.high)

    def _browsed(self, base: int, found: Browsed | None) -> None:
        """Takes the messages read of a paged-out range that begins at offset `base`."""
        self.is_reading = False
        if found is not None:
            self._ahead.extend((base + at, messages) for at, messages in found.ranges)
            if not found.ranges:
                self.offset = max(self.offset, base + found.end)
        self._wake()

    def _fetch(self, batch: Batch, piece: StreamChunk) -> None:
        self.is_reading = True
        location, behind = batch.location, piece.offset + piece.content.count

        def fetched() -> None:
            self.is_reading = False
            if not batch.resident and batch.location == location:
                self.offset = max(self.offset, behind)  # It can't be read.
            self._wake()

        self._store.fetch(batch, fetched)


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
