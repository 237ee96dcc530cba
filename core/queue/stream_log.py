"""The messages of a stream: all that were published, by offset, until retention drops the oldest.

Nothing is consumed. What is in memory are ranges, what is only on disk paged-out ranges, as in any
backlog, but they stay where they are and readers look into them. Offsets count from 0 and have no
gaps; where a stream begins after retention is kept on disk, together with what was dropped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..definitions.facts import StreamStart
from ..message.batch import MessageRange, PagedOut, QueueEntry
from ..slices import Pause, Steps, release

if TYPE_CHECKING:
    from .context import QueueContext
    from .queue import Queue

_UNKNOWN = -1
STEP_PIECES = 32
"""What one step of paging out looks at, and one of retention drops."""
STEPS_AT_ONCE = 8
"""How many steps of the store's, that discard a range, are kept as one."""
_END = object()


class StreamChunk:
    """Some of the stream, from `offset` on; `newest_ms` is when its last message came (monotonic),
    None if nobody has looked yet."""

    __slots__ = ("held", "newest_ms", "offset", "size_bytes")

    def __init__(
        self, offset: int, held: MessageRange | PagedOut, size_bytes: int, newest_ms: int | None
    ) -> None:
        self.offset = offset
        self.held = held
        self.size_bytes = size_bytes
        """About what it takes on disk, `_UNKNOWN` if nobody has asked yet."""
        self.newest_ms = newest_ms

    @property
    def end(self) -> int:
        return self.offset + self.held.count


_GONE = StreamChunk(0, PagedOut(0, None), 0, None)


class StreamLog:
    """`first` to `end - 1` are there; what is before `committed` may be shown to readers."""

    def __init__(self, queue: Queue, broker: QueueContext) -> None:
        self._queue = queue
        self._broker = broker
        self._start = StreamStart(broker.facts, queue.id)
        self._pieces: list[StreamChunk] = []
        self._offsets: list[int] = []
        """The offsets of the pieces, to search in."""
        self._gone = 0
        """So many pieces in front are gone."""
        self._weighed_bytes = 0
        self._unweighed: deque[StreamChunk] = deque()
        self._weighing = False
        self._dropping = False
        self._over: Callable[[], int] = _nothing_over
        self._again: Callable[[], None] | None = None
        """Who asked for more to be dropped, or for sizes, meanwhile."""
        self._uncommitted: deque[tuple[int, int]] = deque()
        self.first = self._start.load() if queue.durable else 0
        self.end = self.first
        self.committed = self.first
        self.warm_bytes = 0
        """About what its messages in memory take."""
        self.warm_count = 0
        self.on_commit: Callable[[], None] = lambda: None

    # -- what comes in

    def append(self, entry: QueueEntry) -> None:
        """Takes an entry in; readers see it when it is on disk."""
        self._add_range(MessageRange(entry, 0, entry.count))
        store = self._broker.store
        commit = store.barrier() if self._queue.durable else 0
        if commit <= store.committed:
            self.committed = self.end
            self.on_commit()
            return
        self._uncommitted.append((commit, self.end))
        if len(self._uncommitted) == 1:
            self._broker.when_kept(commit, self._committed)

    def _add_range(self, messages: MessageRange) -> None:
        size = self._broker.store.size_of(messages.entry)
        self.warm_bytes += _memory_bytes(messages)
        self.warm_count += messages.count
        self._weighed_bytes += size
        self._add(messages, size, messages.entry.batch.arrived_ms)

    def _add(self, held: MessageRange | PagedOut, size_bytes: int, newest_ms: int | None) -> None:
        self._pieces.append(StreamChunk(self.end, held, size_bytes, newest_ms))
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

    def recover(self, held: Sequence[PagedOut | MessageRange]) -> None:
        """Takes in what an earlier process left, oldest first. What is missing was in front: of
        all that was lost behind a message the store has kept the place."""
        known = sum(part.count for part in held)
        self.first = self.end = max(self.first, self._broker.store.next_offset(self._queue) - known)
        for part in held:
            if isinstance(part, PagedOut):
                self._add(part, _UNKNOWN, None)
                self._unweighed.append(self._pieces[-1])
            else:
                self._add_range(part)
        self.committed = self.end

    # -- what is in it

    def piece_at(self, offset: int) -> StreamChunk:
        """The one with the message of this offset, which is from `first` to `end - 1`."""
        return self._pieces[bisect_right(self._offsets, offset, self._gone) - 1]

    def last_piece(self) -> int:
        """Where the last messages that came in together begin, or the end of an empty stream."""
        if self.first == self.end:
            return self.end
        last = self._pieces[-1]
        return last.offset if isinstance(last.held, MessageRange) else self.end - 1

    @property
    def size_bytes(self) -> int:
        """About what all of it takes on disk, as far as it is known."""
        return self._weighed_bytes

    def weigh(self, weighed: Callable[[], None]) -> bool:
        """Whether all sizes are known. If not, indexes are read for them, and `weighed` is called
        when they are."""
        if self._unweighed and not self._weighing:
            self._weighing = True
            self._broker.slices.start(self._weigh(weighed))
        return not self._weighing

    def _weigh(self, weighed: Callable[[], None]) -> Steps:
        while self._unweighed:
            piece = self._unweighed.popleft()
            if piece.offset < self.first or not isinstance(piece.held, PagedOut):
                continue
            size_bytes = yield from self._broker.store.weigh(piece.held)
            if piece.offset >= self.first:  # It has not been dropped meanwhile.
                piece.size_bytes = size_bytes
                self._weighed_bytes += size_bytes
        self._weighing = False
        weighed()

    # -- retention

    def oldest(self) -> StreamChunk | None:
        """What retention may drop next: never the last piece, nor what is not on disk yet."""
        second = self._gone + 1
        if second >= len(self._pieces) or self._offsets[second] > self.committed:
            return None
        return self._pieces[self._gone]

    def drop(self, over: Callable[[], int], again: Callable[[], None]) -> None:
        """Ends the oldest messages in slices, as long as `over` says how many bytes are too many;
        a piece that is larger is split. Each step is kept as one with where the stream begins then;
        after a crash in between, what is left is looked at anew.

        While something is dropped already, `again` is called when that is done.
        """
        if self._dropping:
            self._again = again
        elif over() and (self.oldest() is not None or isinstance(self._front.held, PagedOut)):
            self._dropping, self._over = True, over
            self._broker.slices.start(self._drop())

    def stop_dropping(self) -> None:
        """Other limits are in force. What readers were told is gone goes all the same."""
        self._over = _nothing_over

    def _drop(self) -> Steps:
        while (over_bytes := self._too_much()) > 0:
            front = self._front
            if isinstance(front.held, PagedOut) and front.size_bytes > over_bytes:
                yield from self._split(front, front.held, over_bytes)
            oldest = self.oldest()
            if oldest is None or not self._too_much():
                break
            if isinstance(oldest.held, PagedOut):
                yield from self._drop_paged_out(oldest, oldest.held)
            else:
                self._drop_ranges()
                yield None
        self._dropping = False
        again, self._again = self._again, None
        if again is not None and not self._queue.deleted:
            again()

    @property
    def _front(self) -> StreamChunk:
        """The oldest piece, whether or not it may be dropped."""
        return self._pieces[self._gone] if self._gone < len(self._pieces) else _GONE

    def _too_much(self) -> int:
        return 0 if self._queue.deleted else self._over()

    def _split(self, piece: StreamChunk, held: PagedOut, size_bytes: int) -> Steps:
        """Makes two of the oldest piece, unless it is a single record."""
        front = yield from self._broker.store.split(held, size_bytes)
        if front is None or self._queue.deleted:
            return
        older = StreamChunk(piece.offset, front.paged_out, front.size_bytes, piece.newest_ms)
        piece.offset = older.end
        piece.size_bytes -= front.size_bytes
        at = self._gone
        self._pieces[at : at + 1] = [older, piece]
        self._offsets[at : at + 1] = [older.offset, piece.offset]

    def _drop_paged_out(self, piece: StreamChunk, held: PagedOut) -> Steps:
        self._leave(piece)
        steps, end = self._broker.store.discard(self._queue, held), piece.end
        step: object = None
        while step is not _END:
            with self._broker.store.together():
                step = _some(steps)
                self._start.keep(end - held.count)
            yield step if isinstance(step, Pause) else None
            if self._queue.deleted:
                return

    def _drop_ranges(self) -> None:
        store = self._broker.store
        with store.together():
            for _ in range(STEP_PIECES):
                oldest = self.oldest()
                if oldest is None or isinstance(oldest.held, PagedOut) or not self._too_much():
                    break
                self._leave(oldest)
                self._cooled(oldest.held)
                if self._queue.durable:
                    store.settle(self._queue, oldest.held)
            if self._queue.durable:
                self._start.keep(self.first)

    def _leave(self, piece: StreamChunk) -> None:
        """The oldest piece is there no more."""
        self._pieces[self._gone] = _GONE
        self._gone += 1
        self.first = piece.end
        self._weighed_bytes -= max(0, piece.size_bytes)
        if self._gone > 64 and self._gone * 2 > len(self._offsets):
            del self._offsets[: self._gone], self._pieces[: self._gone]
            self._gone = 0

    def clear(self) -> None:
        """The queue is gone."""
        pieces, self._pieces = self._pieces, []
        offsets, self._offsets = self._offsets, []
        self._broker.slices.start(release(pieces, pieces.pop))
        self._broker.slices.start(release(offsets, offsets.pop))
        self._unweighed.clear()
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

    def _let_go_some(self, at: int, some: list[StreamChunk], transient: bool) -> None:
        """Of pieces that follow each other, the first of which is at this place."""
        pieces = self._pieces[at - 1 : at] if at > self._gone else []
        known = len(pieces)
        for piece in some:
            before = pieces[-1] if pieces else None
            if not self._let_go(piece, before, transient=transient):
                pieces.append(piece)
        self._pieces[at : at + len(some)] = pieces[known:]
        self._offsets[at : at + len(some)] = [piece.offset for piece in pieces[known:]]

    def _let_go(self, piece: StreamChunk, before: StreamChunk | None, *, transient: bool) -> bool:
        """True if it has become a part of the piece before it."""
        held = piece.held
        if isinstance(held, PagedOut):
            return False
        store, batch = self._broker.store, held.entry.batch
        follows = before.held if before is not None and isinstance(before.held, PagedOut) else None
        paged_out = store.page_out(held, follows, in_order=True)
        if paged_out is None:
            if batch.resident and (transient or batch.place is not None):
                store.evict(batch)
            return False
        self._cooled(held)
        if paged_out is not follows or before is None:
            piece.held = paged_out
            return False
        before.size_bytes += piece.size_bytes
        before.newest_ms = piece.newest_ms
        return True

    def _cooled(self, messages: MessageRange) -> None:
        """It was in memory and is not any more."""
        self.warm_bytes -= _memory_bytes(messages)
        self.warm_count -= messages.count


def _nothing_over() -> int:
    return 0


def _some(steps: Steps) -> object:
    """Takes some steps; gives a `Pause` if that is one of them, `_END` if there are no more."""
    step: object = None
    for _ in range(STEPS_AT_ONCE):
        step = next(steps, _END)
        if step is not None:
            break
    return step


def _memory_bytes(messages: MessageRange) -> int:
    batch = messages.entry.batch
    return batch.size_bytes * messages.count // batch.count
