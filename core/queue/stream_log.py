"""The messages of a stream by offset, until retention drops the oldest.

Messages are in ranges in memory and paged-out ranges on disk, as in any backlog, but they are never
removed by reading. Offsets count from 0 without gaps. The first offset after retention is stored on
disk, committed together with the messages dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ..message.queue_entry import MessageRange, PagedOut, QueueEntry
from ..slices import Steps
from .archives import NO_FLOOR
from .read_ahead import ReadAhead
from .stream_chunks import UNKNOWN, StreamChunk, StreamChunks
from .stream_dropping import StreamDropping

if TYPE_CHECKING:
    from .context import QueueContext
    from .queue import Queue

CHUNKS_AT_ONCE: Final = 32
"""Chunks that one step of paging out visits."""


class StreamLog:
    """The messages at offsets `first` to `end - 1`; readers get those before `committed`."""

    def __init__(self, queue: Queue, broker: QueueContext) -> None:
        self._queue = queue
        self._broker = broker
        self.chunks = StreamChunks()
        self.dropping = StreamDropping(self, queue, broker)
        self._known_bytes = 0
        self._unsized: deque[StreamChunk] = deque()
        self._when_sized: dict[Callable[[], None], None] = {}
        self._uncommitted: deque[tuple[int, int]] = deque()
        self.first = self.dropping.stored_start()
        self.end = self.first
        self.committed = self.first
        self.floor = NO_FLOOR
        """The offset from which on retention drops nothing."""
        self.resident_bytes = 0
        """About the memory that its messages take."""
        self.resident_count = 0
        self.on_commit: Callable[[], None] = lambda: None
        self.watchers: dict[Callable[[], None], None] = {}
        """Called after each commit too, and when the queue is deleted: readers that are no
        consumers."""
        self.read_ahead = ReadAhead()
        """The entries that these readers have read from disk."""

    # -- appending

    def append(self, entry: QueueEntry) -> None:
        """Appends an entry; readers get it when it is on disk."""
        self._add_range(MessageRange(entry, 0, entry.count))
        store = self._broker.store
        commit = store.barrier() if self._queue.durable else 0
        if commit <= store.progress.committed:
            self.committed = self.end
            self._notify()
            return
        self._uncommitted.append((commit, self.end))
        if len(self._uncommitted) == 1:
            self._broker.commits.when_decided(commit, self._committed)

    def _add_range(self, messages: MessageRange) -> None:
        size = self._broker.store.ranges.size_of(messages.entry)
        self.resident_bytes += _memory_bytes(messages)
        self.resident_count += messages.count
        self._known_bytes += size
        self._add(messages, size, messages.entry.batch.arrived_ms)

    def _add(
        self, content: MessageRange | PagedOut, size_bytes: int, newest_ms: int | None
    ) -> None:
        self.chunks.append(StreamChunk(self.end, content, size_bytes, newest_ms))
        self.end += content.count

    def _committed(self) -> None:
        """Advances `committed`. A refused commit (full disk) is tried again, so it is not counted
        yet."""
        committed = self._broker.store.progress.committed
        waiting = self._uncommitted
        while waiting and waiting[0][0] <= committed:
            self.committed = waiting.popleft()[1]
        if waiting:
            self._broker.commits.on_next(self._committed)
        self._notify()

    def _notify(self) -> None:
        self.on_commit()
        if self.watchers:
            self.notify_watchers()

    def notify_watchers(self) -> None:
        for watcher in tuple(self.watchers):
            watcher()

    def recover(self, content: Sequence[PagedOut | MessageRange]) -> None:
        """Takes in the messages of an earlier process, oldest first. Missing messages were at the
        front: of those lost elsewhere the store has kept the position."""
        known = sum(part.count for part in content)
        self.first = self.end = max(
            self.first, self._broker.store.recovered.next_offset(self._queue) - known
        )
        for part in content:
            if isinstance(part, PagedOut):
                self._add(part, UNKNOWN, None)
                self._unsized.append(self.chunks.last)
            else:
                self._add_range(part)
        self.committed = self.end

    # -- contents

    def last_chunk_offset(self) -> int:
        """Returns the offset of the last chunk published, or the end of an empty stream."""
        if self.first == self.end:
            return self.end
        last = self.chunks.last
        return last.offset if isinstance(last.content, MessageRange) else self.end - 1

    @property
    def size_bytes(self) -> int:
        """The approximate size of all messages on disk, as far as it is known."""
        return self._known_bytes

    def compute_sizes(self, done: Callable[[], None]) -> bool:
        """Returns whether all sizes are known. If not, reads them from the indexes and calls `done`
        when they are."""
        is_computing = bool(self._when_sized)
        if self._unsized or is_computing:
            self._when_sized[done] = None
            if not is_computing:
                self._broker.slices.start(self._compute_sizes())
        return not self._when_sized

    def _compute_sizes(self) -> Steps:
        while self._unsized:
            chunk = self._unsized.popleft()
            if chunk.offset < self.first or not isinstance(chunk.content, PagedOut):
                continue
            size_bytes = yield from self._broker.store.ranges.weigh(chunk.content)
            if chunk.offset >= self.first:  # It has not been dropped meanwhile.
                chunk.size_bytes = size_bytes
                self._known_bytes += size_bytes
        waiting, self._when_sized = self._when_sized, {}
        for done in waiting:
            done()

    # -- dropping

    def oldest(self) -> StreamChunk | None:
        """Returns the chunk that may be dropped next; never the last one, nor one that is not on
        disk yet, nor one that the floor keeps."""
        second = self.chunks.second_offset
        return None if second is None or second > self._droppable_end else self.chunks.oldest

    @property
    def _droppable_end(self) -> int:
        return min(self.committed, self.floor)

    def oldest_kept_by_archive(self) -> StreamChunk | None:
        """Returns the oldest chunk if nothing but the floor keeps it, or a part of it."""
        oldest, second = self.chunks.oldest, self.chunks.second_offset
        if oldest is None or oldest.end <= self.floor or oldest.end > self.committed:
            return None
        has_more = second is not None or isinstance(oldest.content, PagedOut)
        return oldest if has_more else None

    def remove_oldest(self, chunk: StreamChunk) -> None:
        """Removes the oldest chunk; its messages are still to be settled."""
        self.chunks.remove_oldest()
        self.first = chunk.end
        self._known_bytes -= max(0, chunk.size_bytes)
        if isinstance(chunk.content, MessageRange):
            self._subtract_resident(chunk.content)

    def clear(self) -> None:
        """Drops everything: the queue was deleted."""
        for steps in self.chunks.clear():
            self._broker.slices.start(steps)
        self._unsized.clear()
        self._uncommitted.clear()
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
            at, some = self.chunks.some_from(offset, CHUNKS_AT_ONCE)
            if not some:
                return
            offset = some[-1].end
            self._page_out_chunks(
                at, [chunk for chunk in some if chunk.end <= kept_from], transient
            )
            yield

    def _page_out_chunks(self, at: int, some: list[StreamChunk], transient: bool) -> None:
        """Pages out consecutive chunks, the first of which is at index `at`."""
        kept: list[StreamChunk] = []
        before = self.chunks.before(at)
        for chunk in some:
            if not self._page_out_chunk(chunk, before, transient=transient):
                kept.append(chunk)
                before = chunk
        self.chunks.replace(at, len(some), kept)

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
        paged_out = store.ranges.page_out(content, follows, in_order=True)
        if paged_out is None:
            if batch.resident and (transient or batch.location is not None):
                store.batches.evict(batch)
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


def _memory_bytes(messages: MessageRange) -> int:
    batch = messages.entry.batch
    return batch.size_bytes * messages.count // batch.count
