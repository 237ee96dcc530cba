"""A reader's place in a stream, and finding one by time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..block import Cold, Span

if TYPE_CHECKING:
    from ..block import Block
    from ..store.port import Browsed, Store
    from .stream_log import Piece, StreamLog


class Cursor:
    """Gives the messages from `offset` on; `wake` is called when there are some again that had to
    be read from disk, for which it `is_reading`. With `early` also those that are not there yet.
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
        self._ahead: deque[tuple[int, Span]] = deque()
        """What was read from disk, each span with the offset of its first message."""
        self.is_reading = False
        self.offset = offset

    def next(self) -> Span | None:
        """The messages at `offset`, and some behind them; whoever takes them moves `offset` on.

        None at the end of what may be read, or until `wake`.
        """
        log = self._log
        if self.offset < log.first:
            self.offset = log.first
        end = log.end if self._early else log.committed
        if self.is_reading or self.offset >= end:
            return None
        span = self._from_ahead() or self._from_log()
        room = end - self.offset
        if span is None or span.count <= room:
            return span
        return Span(span.run, span.low, span.low + room) if room > 0 else None

    def let_go(self) -> None:
        """Memory is short: what was read ahead is read again when it is wanted."""
        self._ahead.clear()

    def _from_ahead(self) -> Span | None:
        ahead = self._ahead
        while ahead and ahead[0][0] + ahead[0][1].count <= self.offset:
            ahead.popleft()
        if not ahead:
            return None
        at, span = ahead[0]
        if not span.run.block.resident:
            # It has left memory again, and where it was then it need not be any more.
            ahead.clear()
            return None
        if at > self.offset:
            self.offset = at  # What lay between could not be read; the store has said so.
        return Span(span.run, span.low + self.offset - at, span.high)

    def _from_log(self) -> Span | None:
        piece = self._log.piece_at(self.offset)
        held = piece.held
        if isinstance(held, Cold):
            self.is_reading = True
            at = self.offset - piece.offset
            self._store.browse(held, at, partial(self._browsed, piece.offset))
            return None
        if not held.run.block.resident:
            self._fetch(held.run.block, piece)
            return None
        return Span(held.run, held.low + self.offset - piece.offset, held.high)

    def _browsed(self, base: int, found: Browsed | None) -> None:
        """Gets what was read of a stretch that begins at offset `base`."""
        self.is_reading = False
        if found is not None:
            self._ahead.extend((base + at, span) for at, span in found.spans)
            if not found.spans:
                self.offset = max(self.offset, base + found.end)
        self._wake()

    def _fetch(self, block: Block, piece: Piece) -> None:
        self.is_reading = True
        place, behind = block.place, piece.offset + piece.held.count

        def fetched() -> None:
            self.is_reading = False
            if not block.resident and block.place == place:
                self.offset = max(self.offset, behind)  # It can't be read.
            self._wake()

        self._store.fetch(block, fetched)


class Search:
    """Finds the first message that came at `at_ms` or later, by halving; `found` gets its offset,
    now or after reads from disk."""

    def __init__(
        self, log: StreamLog, store: Store, at_ms: int, found: Callable[[int], None]
    ) -> None:
        self._low, self._high = log.first, log.committed
        self._log = log
        self._store = store
        self._at_ms = at_ms
        self._found = found
        self._cursor: Cursor | None = None
        """Where it is looking, while that is being read."""

    def step(self) -> None:
        """Goes on until something has to be read first."""
        while self._low < self._high:
            middle = (self._low + self._high) // 2
            cursor = self._cursor or Cursor(self._log, self._store, middle, self.step)
            self._cursor = cursor
            span = cursor.next()
            if span is None and cursor.is_reading:
                return
            self._cursor = None
            if span is None or span.run.block.arrived_ms >= self._at_ms:
                self._high = middle  # Or nothing behind it can be read.
            else:
                self._low = cursor.offset + 1
        self._found(self._low)
