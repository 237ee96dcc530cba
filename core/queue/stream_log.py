"""The messages of a stream by offset, until retention drops the oldest.

Messages are in ranges in memory and paged-out ranges on disk, as in any backlog, but they are never
removed by reading. Offsets count from 0 without gaps. The first offset after retention is stored on
disk, committed together with the messages dropped.
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
STEP_CHUNKS = 32
"""Chunks that one step of paging out visits, and one of retention drops."""
STEPS_AT_ONCE = 8
"""Steps of discarding a paged-out range that are committed as one."""
_END = object()


class StreamChunk:
    """Consecutive messages of a stream, from `offset` on.

    `newest_ms` is when the last one arrived (monotonic), None if it has not been read yet.
    """

    __slots__ = ("content", "newest_ms", "offset", "size_bytes")

    def __init__(
        self, offset: int, content: MessageRange | PagedOut, size_bytes: int, newest_ms: int | None
    ) -> None:
        self.offset = offset
        self.content = content
        self.size_bytes = size_bytes
        """About its bytes on disk, `_UNKNOWN` if not computed yet."""
        self.newest_ms = newest_ms

    @property
    def end(self) -> int:
        return self.offset + self.content.count


_DROPPED = StreamChunk(0, PagedOut(0, None), 0, None)


class StreamLog:
    """The messages at offsets `first` to `end - 1`; readers get those before `committed`."""

    def __init__(self, queue: Queue, broker: QueueContext) -> None:
        self._queue = queue
        self._broker = broker
        self._start = StreamStart(broker.facts, queue.id)
        self._chunks: list[StreamChunk] = []
        self._offsets: list[int] = []
        """The offsets of the chunks, to search in."""
        self._dropped = 0
        """Chunks at the front that were dropped, but not removed from the list yet."""
        self._known_bytes = 0
        self._unsized: deque[StreamChunk] = deque()
        self._sizing = False
        self._dropping = False
        self._excess: Callable[[], int] = _no_excess
        self._again: Callable[[], None] | None = None
        """Called when dropping is done: more was to be dropped meanwhile."""
        self._uncommitted: deque[tuple[int, int]] = deque()
        self.first = self._start.load() if queue.durable else 0
        self.end = self.first
        self.committed = self.first
        self.resident_bytes = 0
        """About the memory that its messages take."""
        self.resident_count = 0
        self.on_commit: Callable[[], None] = lambda: None

    # -- appending

    def append(self, entry: QueueEntry) -> None:
        """Appends an entry; readers get it when it is on disk."""
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
        self.resident_bytes += _memory_bytes(messages)
        self.resident_count += messages.count
        self._known_bytes += size
        self._add(messages, size, messages.entry.batch.arrived_ms)

    def _add(
        self, content: MessageRange | PagedOut, size_bytes: int, newest_ms: int | None
    ) -> None:
        self._chunks.append(StreamChunk(self.end, content, size_bytes, newest_ms))
        self._offsets.append(self.end)
        self.end += content.count

    def _committed(self) -> None:
        """Advances `committed`. A refused commit (full disk) is tried again, so it is not counted
        yet."""
        committed = self._broker.store.committed
        waiting = self._uncommitted
        while waiting and waiting[0][0] <= committed:
            self.committed = waiting.popleft()[1]
        if waiting:
            self._broker.on_commit(self._committed)
        self.on_commit()

    def recover(self, content: Sequence[PagedOut | MessageRange]) -> None:
        """Takes in the messages of an earlier process, oldest first. Missing messages were at the
        front: of those lost elsewhere the store has kept the position."""
        known = sum(part.count for part in content)
        self.first = self.end = max(self.first, self._broker.store.next_offset(self._queue) - known)
        for part in content:
            if isinstance(part, PagedOut):
                self._add(part, _UNKNOWN, None)
                self._unsized.append(self._chunks[-1])
            else:
                self._add_range(part)
        self.committed = self.end

    # -- contents

    def chunk_at(self, offset: int) -> StreamChunk:
        """Returns the chunk with the message at `offset`, from `first` to `end - 1`."""
        return self._chunks[bisect_right(self._offsets, offset, self._dropped) - 1]

    def last_chunk_offset(self) -> int:
        """Returns the offset of the last chunk published, or the end of an empty stream."""
        if self.first == self.end:
            return self.end
        last = self._chunks[-1]
        return last.offset if isinstance(last.content, MessageRange) else self.end - 1

    @property
    def size_bytes(self) -> int:
        """About the bytes of all messages on disk, as far as they are known."""
        return self._known_bytes

    def compute_sizes(self, done: Callable[[], None]) -> bool:
        """Returns whether all sizes are known. If not, reads them from the indexes and calls `done`
        when they are."""
        if self._unsized and not self._sizing:
            self._sizing = True
            self._broker.slices.start(self._compute_sizes(done))
        return not self._sizing

    def _compute_sizes(self, done: Callable[[], None]) -> Steps:
        while self._unsized:
            chunk = self._unsized.popleft()
            if chunk.offset < self.first or not isinstance(chunk.content, PagedOut):
                continue
            size_bytes = yield from self._broker.store.weigh(chunk.content)
            if chunk.offset >= self.first:  # It has not been dropped meanwhile.
                chunk.size_bytes = size_bytes
                self._known_bytes += size_bytes
        self._sizing = False
        done()

    # -- retention

    def oldest(self) -> StreamChunk | None:
        """Returns the chunk that retention may drop next; never the last one, nor one that is not
        on disk yet."""
        second = self._dropped + 1
        if second >= len(self._chunks) or self._offsets[second] > self.committed:
            return None
        return self._chunks[self._dropped]

    def drop(self, over: Callable[[], int], again: Callable[[], None]) -> None:
        """Drops the oldest messages in slices, while `over` returns more than 0 bytes to drop; a
        larger chunk is split. Each step is committed together with the new first offset, so after a
        crash the rest is dropped anew.

        If messages are being dropped already, `again` is called when that is done.
        """
        if self._dropping:
            self._again = again
        elif over() and (self.oldest() is not None or isinstance(self._front.content, PagedOut)):
            self._dropping, self._excess = True, over
            self._broker.slices.start(self._drop())

    def stop_dropping(self) -> None:
        """Stops `drop`, since other limits are in force; a step in progress is finished."""
        self._excess = _no_excess

    def _drop(self) -> Steps:
        while (over_bytes := self._excess_bytes()) > 0:
            front = self._front
            if isinstance(front.content, PagedOut) and front.size_bytes > over_bytes:
                yield from self._split(front, front.content, over_bytes)
            oldest = self.oldest()
            if oldest is None or not self._excess_bytes():
                break
            if isinstance(oldest.content, PagedOut):
                yield from self._drop_paged_out(oldest, oldest.content)
            else:
                self._drop_ranges()
                yield None
        self._dropping = False
        again, self._again = self._again, None
        if again is not None and not self._queue.deleted:
            again()

    @property
    def _front(self) -> StreamChunk:
        """The oldest chunk, whether or not it may be dropped."""
        return self._chunks[self._dropped] if self._dropped < len(self._chunks) else _DROPPED

    def _excess_bytes(self) -> int:
        return 0 if self._queue.deleted else self._excess()

    def _split(self, chunk: StreamChunk, content: PagedOut, size_bytes: int) -> Steps:
        """Splits the oldest chunk in two, unless it is a single record."""
        front = yield from self._broker.store.split(content, size_bytes)
        if front is None or self._queue.deleted:
            return
        older = StreamChunk(chunk.offset, front.paged_out, front.size_bytes, chunk.newest_ms)
        chunk.offset = older.end
        chunk.size_bytes -= front.size_bytes
        at = self._dropped
        self._chunks[at : at + 1] = [older, chunk]
        self._offsets[at : at + 1] = [older.offset, chunk.offset]

    def _drop_paged_out(self, chunk: StreamChunk, content: PagedOut) -> Steps:
        self._remove_oldest(chunk)
        steps, end = self._broker.store.discard(self._queue, content), chunk.end
        step: object = None
        while step is not _END:
            with self._broker.store.together():
                step = _some(steps)
                self._start.keep(end - content.count)
            yield step if isinstance(step, Pause) else None
            if self._queue.deleted:
                return

    def _drop_ranges(self) -> None:
        store = self._broker.store
        with store.together():
            for _ in range(STEP_CHUNKS):
                oldest = self.oldest()
                if (
                    oldest is None
                    or isinstance(oldest.content, PagedOut)
                    or not self._excess_bytes()
                ):
                    break
                self._remove_oldest(oldest)
                self._subtract_resident(oldest.content)
                if self._queue.durable:
                    store.settle(self._queue, oldest.content)
            if self._queue.durable:
                self._start.keep(self.first)

    def _remove_oldest(self, chunk: StreamChunk) -> None:
        """Removes the oldest chunk from the list."""
        self._chunks[self._dropped] = _DROPPED
        self._dropped += 1
        self.first = chunk.end
        self._known_bytes -= max(0, chunk.size_bytes)
        if self._dropped > 64 and self._dropped * 2 > len(self._offsets):
            del self._offsets[: self._dropped], self._chunks[: self._dropped]
            self._dropped = 0

    def clear(self) -> None:
        """Drops everything: the queue was deleted."""
        chunks, self._chunks = self._chunks, []
        offsets, self._offsets = self._offsets, []
        self._broker.slices.start(release(chunks, chunks.pop))
        self._broker.slices.start(release(offsets, offsets.pop))
        self._unsized.clear()
        self._uncommitted.clear()
        self._dropped = 0
        self.first = self.committed = self.end
        self.resident_bytes = self.resident_count = self._known_bytes = 0

    # -- paging out

    def page_out(
        self, keep_messages: int, *, transient: bool, enough: Callable[[], bool]
    ) -> Iterator[None]:
        """Pages out or evicts all but about `keep_messages` at the end; in steps, between which the
        stream may change."""
        kept_from = min(self.end - keep_messages, self.committed)
        offset = self.first
        while offset < kept_from and not enough():
            at = max(self._dropped, bisect_left(self._offsets, offset, self._dropped))
            some = self._chunks[at : at + STEP_CHUNKS]
            if not some:
                return
            offset = some[-1].end
            self._page_out_chunks(
                at, [chunk for chunk in some if chunk.end <= kept_from], transient
            )
            yield

    def _page_out_chunks(self, at: int, some: list[StreamChunk], transient: bool) -> None:
        """Pages out consecutive chunks, the first of which is at index `at`."""
        chunks = self._chunks[at - 1 : at] if at > self._dropped else []
        known = len(chunks)
        for chunk in some:
            before = chunks[-1] if chunks else None
            if not self._page_out_chunk(chunk, before, transient=transient):
                chunks.append(chunk)
        self._chunks[at : at + len(some)] = chunks[known:]
        self._offsets[at : at + len(some)] = [chunk.offset for chunk in chunks[known:]]

    def _page_out_chunk(
        self, chunk: StreamChunk, before: StreamChunk | None, *, transient: bool
    ) -> bool:
        """Pages out one chunk; True if it has become a part of the chunk before it."""
        content = chunk.content
        if isinstance(content, PagedOut):
            return False
        store, batch = self._broker.store, content.entry.batch
        follows = (
            before.content if before is not None and isinstance(before.content, PagedOut) else None
        )
        paged_out = store.page_out(content, follows, in_order=True)
        if paged_out is None:
            if batch.resident and (transient or batch.location is not None):
                store.evict(batch)
            return False
        self._subtract_resident(content)
        if paged_out is not follows or before is None:
            chunk.content = paged_out
            return False
        before.size_bytes += chunk.size_bytes
        before.newest_ms = chunk.newest_ms
        return True

    def _subtract_resident(self, messages: MessageRange) -> None:
        """Subtracts messages that left memory from the counts."""
        self.resident_bytes -= _memory_bytes(messages)
        self.resident_count -= messages.count


def _no_excess() -> int:
    return 0


def _some(steps: Steps) -> object:
    """Takes some steps; returns a `Pause` if one of them is, `_END` if there are no more."""
    step: object = None
    for _ in range(STEPS_AT_ONCE):
        step = next(steps, _END)
        if step is not None:
            break
    return step


def _memory_bytes(messages: MessageRange) -> int:
    batch = messages.entry.batch
    return batch.size_bytes * messages.count // batch.count
