"""The messages of a stream: all that were published, by offset, until retention drops the oldest.

Nothing is consumed. What is in memory are spans, what is only on disk cold stretches, as in any
backlog, but they stay where they are and readers look into them. Offsets count from 0 and have no
gaps; where a stream begins after retention is kept on disk, together with what was dropped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..block import Cold, Run, Span
from ..definitions.facts import StreamStart

if TYPE_CHECKING:
    from .queue import Queue
    from .surroundings import Surroundings

_UNKNOWN = -1
STEP_PIECES = 32
"""What one step of paging out looks at."""


class Piece:
    """Some of the stream, from `offset` on; `newest_ms` is when its last message came (monotonic),
    None if nobody has looked yet."""

    __slots__ = ("held", "newest_ms", "offset", "size_bytes")

    def __init__(
        self, offset: int, held: Span | Cold, size_bytes: int, newest_ms: int | None
    ) -> None:
        self.offset = offset
        self.held = held
        self.size_bytes = size_bytes
        """About what it takes on disk, `_UNKNOWN` if nobody has asked yet."""
        self.newest_ms = newest_ms

    @property
    def end(self) -> int:
        return self.offset + self.held.count


_GONE = Piece(0, Cold(0, None), 0, None)


class StreamLog:
    """`first` to `end - 1` are there; what is before `committed` may be shown to readers."""

    def __init__(self, queue: Queue, broker: Surroundings) -> None:
        self._queue = queue
        self._broker = broker
        self._start = StreamStart(broker.facts, queue.id)
        self._pieces: list[Piece] = []
        self._offsets: list[int] = []
        """The offsets of the pieces, to search in."""
        self._gone = 0
        """So many pieces in front are gone."""
        self._weighed_bytes = 0
        self._unweighed = False
        self._uncommitted: deque[tuple[int, int]] = deque()
        self.first = self._start.load() if queue.durable else 0
        self.end = self.first
        self.committed = self.first
        self.warm_bytes = 0
        """About what its messages in memory take."""
        self.warm_count = 0
        self.on_commit: Callable[[], None] = lambda: None

    # -- what comes in

    def append(self, run: Run) -> None:
        """Takes a run in; readers see it when it is on disk."""
        self._add_span(Span(run, 0, run.count))
        store = self._broker.store
        commit = store.barrier() if self._queue.durable else 0
        if commit <= store.committed:
            self.committed = self.end
            self.on_commit()
            return
        self._uncommitted.append((commit, self.end))
        if len(self._uncommitted) == 1:
            self._broker.when_kept(commit, self._committed)

    def _add_span(self, span: Span) -> None:
        size = self._broker.store.size_of(span.run)
        self.warm_bytes += _memory_bytes(span)
        self.warm_count += span.count
        self._weighed_bytes += size
        self._add(span, size, span.run.block.arrived_ms)

    def _add(self, held: Span | Cold, size_bytes: int, newest_ms: int | None) -> None:
        self._pieces.append(Piece(self.end, held, size_bytes, newest_ms))
        self._offsets.append(self.end)
        self.end += held.count

    def _committed(self) -> None:
        """A full disk refuses commits and tries again: what it refused is not there yet."""
        committed = self._broker.store.committed
        waiting = self._uncommitted
        while waiting and waiting[0][0] <= committed:
            self.committed = waiting.popleft()[1]
        if waiting:
            self._broker.on_commit(self._committed)
        self.on_commit()

    def recover(self, held: Sequence[Cold | Span]) -> None:
        """Takes in what an earlier process left, oldest first. What is missing was in front: of
        all that was lost behind a message the store has kept the place."""
        known = sum(part.count for part in held)
        self.first = self.end = max(self.first, self._broker.store.next_offset(self._queue) - known)
        for part in held:
            if isinstance(part, Cold):
                self._unweighed = True
                self._add(part, _UNKNOWN, None)
            else:
                self._add_span(part)
        self.committed = self.end

    # -- what is in it

    def piece_at(self, offset: int) -> Piece:
        """The one with the message of this offset, which is from `first` to `end - 1`."""
        return self._pieces[bisect_right(self._offsets, offset, self._gone) - 1]

    def last_piece(self) -> int:
        """Where the last messages that came in together begin, or the end of an empty stream."""
        if self.first == self.end:
            return self.end
        last = self._pieces[-1]
        return last.offset if isinstance(last.held, Span) else self.end - 1

    @property
    def size_bytes(self) -> int:
        """About what all of it takes on disk; reads indexes when it is asked first."""
        if self._unweighed:
            self._unweighed = False
            for piece in self._pieces[self._gone :]:
                if isinstance(piece.held, Cold) and piece.size_bytes == _UNKNOWN:
                    piece.size_bytes = self._broker.store.weigh(piece.held)
                    self._weighed_bytes += piece.size_bytes
        return self._weighed_bytes

    # -- retention

    def oldest(self) -> Piece | None:
        """What retention may drop next: never the last piece, nor what is not on disk yet."""
        second = self._gone + 1
        if second >= len(self._pieces) or self._offsets[second] > self.committed:
            return None
        return self._pieces[self._gone]

    def drop_while(self, wanted: Callable[[], bool]) -> None:
        """Ends the oldest piece, which may be split before, as long as that is wanted; that they
        are gone is kept as one."""
        if not wanted() or self.oldest() is None:
            return
        with self._broker.store.together():
            while (oldest := self.oldest()) is not None:
                self._drop(oldest)
                if not wanted():
                    break
            if self._queue.durable:
                self._start.keep(self.first)
        if self._gone > 64 and self._gone * 2 > len(self._offsets):
            del self._offsets[: self._gone], self._pieces[: self._gone]
            self._gone = 0

    def _drop(self, piece: Piece) -> None:
        self._pieces[self._gone] = _GONE
        self._gone += 1
        self.first = piece.end
        self._weighed_bytes -= max(0, piece.size_bytes)
        held, store = piece.held, self._broker.store
        if isinstance(held, Cold):
            for _ in store.discard(self._queue, held):
                pass
            return
        self._cooled(held)
        if self._queue.durable:
            store.settle(self._queue, held)

    def split(self, size_bytes: int) -> None:
        """Makes two of the oldest piece, if it is a cold one that is larger."""
        at = self._gone
        piece = self._pieces[at] if at < len(self._pieces) else _GONE
        if not isinstance(piece.held, Cold) or piece.size_bytes <= size_bytes:
            return
        front = self._broker.store.split(piece.held, size_bytes)
        if front is None:
            return
        older = Piece(piece.offset, front.cold, front.size_bytes, piece.newest_ms)
        piece.offset = older.end
        piece.size_bytes -= front.size_bytes
        self._pieces[at : at + 1] = [older, piece]
        self._offsets[at : at + 1] = [older.offset, piece.offset]

    def clear(self) -> None:
        """The queue is gone."""
        self._pieces.clear()
        self._offsets.clear()
        self._uncommitted.clear()
        self._gone = 0
        self.first = self.committed = self.end
        self.warm_bytes = self.warm_count = self._weighed_bytes = 0

    # -- out of memory

    def page_out(
        self, keep_messages: int, *, transient: bool, enough: Callable[[], bool]
    ) -> Iterator[None]:
        """Lets go of messages, but not of about so many at the end; in steps, between which the
        stream may change."""
        kept_from = min(self.end - keep_messages, self.committed)
        offset = self.first
        while offset < kept_from and not enough():
            at = max(self._gone, bisect_left(self._offsets, offset, self._gone))
            some = self._pieces[at : at + STEP_PIECES]
            if not some:
                return
            offset = some[-1].end
            self._let_go_some(at, [piece for piece in some if piece.end <= kept_from], transient)
            yield

    def _let_go_some(self, at: int, some: list[Piece], transient: bool) -> None:
        """Of pieces that follow each other, the first of which is at this place."""
        pieces = self._pieces[at - 1 : at] if at > self._gone else []
        known = len(pieces)
        for piece in some:
            before = pieces[-1] if pieces else None
            if not self._let_go(piece, before, transient=transient):
                pieces.append(piece)
        self._pieces[at : at + len(some)] = pieces[known:]
        self._offsets[at : at + len(some)] = [piece.offset for piece in pieces[known:]]

    def _let_go(self, piece: Piece, before: Piece | None, *, transient: bool) -> bool:
        """True if it has become a part of the piece before it."""
        held = piece.held
        if isinstance(held, Cold):
            return False
        store, block = self._broker.store, held.run.block
        follows = before.held if before is not None and isinstance(before.held, Cold) else None
        cold = store.chill(held, follows, in_order=True)
        if cold is None:
            if block.resident and (transient or block.place is not None):
                store.evict(block)
            return False
        self._cooled(held)
        if cold is not follows or before is None:
            piece.held = cold
            return False
        before.size_bytes += piece.size_bytes
        before.newest_ms = piece.newest_ms
        return True

    def _cooled(self, span: Span) -> None:
        """It was in memory and is not any more."""
        self.warm_bytes -= _memory_bytes(span)
        self.warm_count -= span.count


def _memory_bytes(span: Span) -> int:
    block = span.run.block
    return block.size_bytes * span.count // block.count
