"""The reads that a queue has requested from the store: of evicted batches and paged-out ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ..message.queue_entry import MessageRange, PagedOut, QueueEntry

if TYPE_CHECKING:
    from .backlog import Backlog
    from .backlog_queue import BacklogQueue
    from .context import QueueContext

READ_AHEAD_MESSAGES: Final = 6_000
FETCH_AHEAD_ENTRIES: Final = 256
FETCH_AHEAD_BYTES: Final = 1_048_576
"""Limits of what is requested from the store together."""


class PendingReads:
    """The pending reads of one queue.

    `is_awaited` while the queue can't dispatch before a read is done; then waiting gets are served
    first and the queue is woken.
    """

    __slots__ = ("_broker", "_queue", "_reading", "_scanning", "_waiting_gets", "is_awaited")

    def __init__(self, queue: BacklogQueue, broker: QueueContext) -> None:
        self._queue = queue
        self._broker = broker
        self._waiting_gets: list[Callable[[], None]] = []
        self._reading: dict[PagedOut, None] = {}
        self._scanning: PagedOut | None = None
        self.is_awaited = False

    @property
    def reading(self) -> list[PagedOut]:
        """The paged-out ranges that are being read."""
        return list(self._reading)

    def when_head_read(self, head: MessageRange | PagedOut, action: Callable[[], None]) -> None:
        """Runs `action` when the head of the queue is in memory."""
        self.await_head(head)
        self._waiting_gets.append(action)

    def when_requeued(self, action: Callable[[], None]) -> None:
        """Runs `action` as `when_head_read` does, once `requeues_finished` is called."""
        self._waiting_gets.append(action)

    def requeues_finished(self) -> None:
        """Serves the gets that waited for requeues."""
        if self._waiting_gets and not self.is_awaited:
            self._resume()

    def await_head(self, head: MessageRange | PagedOut) -> None:
        """Reads the head of the queue, which can't dispatch before that is done."""
        if isinstance(head, PagedOut):
            if not self.is_awaited:
                self.is_awaited = True
                for paged_out in self._reading:
                    self._broker.store.page_in.hurry(paged_out)
            if head not in self._reading:
                self._read_front(self._queue.backlog)
        elif not self.is_awaited:
            self.is_awaited = True
            self._broker.store.batches.fetch(head.entry.batch, partial(self._fetched, head.entry))
            self._fetch_behind(head)

    def _fetch_behind(self, head: MessageRange) -> None:
        """Fetches the batches behind the head too: single messages have a batch each."""
        room = FETCH_AHEAD_BYTES - head.entry.batch.size_bytes
        for messages in self._queue.backlog.front(FETCH_AHEAD_ENTRIES):
            batch = messages.entry.batch
            if room <= 0:
                return
            if messages is not head and not batch.resident:
                self._broker.store.batches.fetch(batch, _ignore)
                room -= batch.size_bytes

    def read(self, paged_out: PagedOut, *, is_urgent: bool = True) -> None:
        """Reads the first messages of a paged-out range, unless they are being read."""
        if paged_out not in self._reading:
            self._reading[paged_out] = None
            self._broker.store.page_in.request(
                paged_out, partial(self._paged_in, paged_out), is_urgent=is_urgent
            )

    def scan(self, paged_out: PagedOut) -> None:
        """Reads a paged-out range in the background, one range at a time."""
        if self._scanning is None and paged_out not in self._reading:
            self._scanning = paged_out
            self.read(paged_out, is_urgent=False)

    def hurry(self, paged_out: PagedOut) -> None:
        """Reads the first messages of a paged-out range ahead of background reads."""
        if paged_out in self._reading:
            self._broker.store.page_in.hurry(paged_out)
        else:
            self.read(paged_out)

    def read_ahead(self, backlog: Backlog) -> None:
        """Reads the next paged-out ranges while the messages before them are delivered."""
        if not self._reading:
            self._read_front(backlog)

    def _read_front(self, backlog: Backlog) -> None:
        """Reads all small ranges at the front together: each would take a turn of its own."""
        for paged_out in backlog.paged_out_within(READ_AHEAD_MESSAGES):
            self.read(paged_out)

    def _fetched(self, entry: QueueEntry) -> None:
        """Continues after a fetch; an entry that could not be read is dropped from the queue. The
        store has logged that, and keeps it on disk."""
        if not entry.batch.resident:
            self._queue.drop_unreadable(entry)
        self._resume()

    def _paged_in(self, paged_out: PagedOut, ranges: Sequence[MessageRange]) -> None:
        self._reading.pop(paged_out, None)
        if self._scanning is paged_out:
            self._scanning = None
        try:
            self._queue.paged_in(paged_out, ranges)
        finally:
            # Waiting gets continue with what there is, even if this failed.
            if self.is_awaited:
                self._resume()

    def _resume(self) -> None:
        self.is_awaited = False
        getting, self._waiting_gets = self._waiting_gets, []
        for action in getting:
            self._queue.when_head_ready(action)
        self._broker.wake(self._queue)
        self._broker.on_work()


def _ignore() -> None:
    """Does nothing when a batch is in memory: the queue has not come to it yet."""
