"""Drops the oldest messages of a stream in slices, as its retention asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..definitions.facts import StreamStart
from ..message.queue_entry import MessageRange, PagedOut
from ..slices import Pause, Steps
from .stream_chunks import StreamChunk

if TYPE_CHECKING:
    from .context import QueueContext
    from .queue import Queue
    from .stream_log import StreamLog

CHUNKS_AT_ONCE: Final = 32
"""Chunks that are dropped in one step."""
STEPS_AT_ONCE: Final = 8
"""Steps of discarding a paged-out range that are committed as one."""
_END: Final = object()


class StreamDropping:
    """Drops the oldest messages of one stream.

    Each step is committed together with the new first offset, so after a crash the rest is dropped
    anew.
    """

    def __init__(self, log: StreamLog, queue: Queue, broker: QueueContext) -> None:
        self._log = log
        self._queue = queue
        self._broker = broker
        self._start = StreamStart(broker.facts, queue.id)
        self._is_dropping = False
        self._excess: Callable[[], int] = _no_excess
        self._unsplit = (-1, -1)
        """Offset and floor of a chunk that has no record before the floor."""
        self._again: Callable[[], None] | None = None
        """Called when dropping is done: more was to be dropped meanwhile."""

    def stored_start(self) -> int:
        """Returns the first offset as it is stored."""
        return self._start.load() if self._queue.durable else 0

    def begin(self, excess: Callable[[], int], again: Callable[[], None]) -> None:
        """Drops messages while `excess` returns more than 0 bytes to drop; a larger chunk is split.

        If messages are being dropped already, `again` is called when that is done.
        """
        if self._is_dropping:
            self._again = again
            return
        if excess() and (self._log.oldest() is not None or self._can_split()):
            self._is_dropping, self._excess = True, excess
            self._broker.slices.start(self._drop())

    def _can_split(self) -> bool:
        oldest, floor = self._log.chunks.oldest, self._log.floor
        return (
            oldest is not None
            and isinstance(oldest.content, PagedOut)
            and oldest.offset < floor
            and (oldest.offset, floor) != self._unsplit
        )

    def stop(self) -> None:
        """Stops dropping, since other limits are in force; a step in progress is finished."""
        self._excess = _no_excess

    def _drop(self) -> Steps:
        while (excess_bytes := self._excess_bytes()) > 0:
            front = self._log.chunks.oldest
            if (
                front is not None
                and isinstance(front.content, PagedOut)
                and (front.size_bytes > excess_bytes or front.end > self._log.floor)
            ):
                yield from self._split(front, front.content, excess_bytes)
            oldest = self._log.oldest()
            if oldest is None or not self._excess_bytes():
                break
            if isinstance(oldest.content, PagedOut):
                yield from self._drop_paged_out(oldest, oldest.content)
            else:
                self._drop_ranges()
                yield None
        self._is_dropping = False
        again, self._again = self._again, None
        if again is not None and not self._queue.deleted:
            again()

    def _excess_bytes(self) -> int:
        return 0 if self._queue.deleted else self._excess()

    def _split(self, chunk: StreamChunk, content: PagedOut, size_bytes: int) -> Steps:
        """Splits the oldest chunk in two, unless it is a single record, or its first record ends
        behind the floor."""
        offset, floor = chunk.offset, self._log.floor
        front = yield from self._broker.store.ranges.split(content, size_bytes, floor - offset)
        if front is None:
            self._unsplit = offset, floor
        if front is None or self._queue.deleted:
            return
        older = StreamChunk(chunk.offset, front.paged_out, front.size_bytes, chunk.newest_ms)
        chunk.offset = older.end
        chunk.size_bytes -= front.size_bytes
        self._log.chunks.insert_before_oldest(older)

    def _drop_paged_out(self, chunk: StreamChunk, content: PagedOut) -> Steps:
        self._log.remove_oldest(chunk)
        steps, end = self._broker.store.discard(self._queue, content), chunk.end
        step: object = None
        while step is not _END:
            with self._broker.store.together():
                step = _some(steps)
                self._start.store(end - content.count)
            yield step if isinstance(step, Pause) else None
            if self._queue.deleted:
                return

    def _drop_ranges(self) -> None:
        store, queue = self._broker.store, self._queue
        with store.together():
            for _ in range(CHUNKS_AT_ONCE):
                oldest = self._log.oldest()
                if oldest is None or not isinstance(oldest.content, MessageRange):
                    break
                if not self._excess_bytes():
                    break
                self._log.remove_oldest(oldest)
                if queue.durable:
                    store.settle(queue, oldest.content)
            if queue.durable:
                self._start.store(self._log.first)


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
