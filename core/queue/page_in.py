"""What a queue has asked the store for: batches without their bytes, and paged-out ranges.

`is_awaited` while the queue can't go on before something arrives; then it is woken, and those who
wanted to get are served first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..message.batch import MessageRange, PagedOut, QueueEntry

if TYPE_CHECKING:
    from .backlog import Backlog
    from .context import QueueContext
    from .queue import Queue

READ_AHEAD_MESSAGES = 6_000
FETCH_AHEAD_ENTRIES = 256
FETCH_AHEAD_BYTES = 1_048_576
"""How much of what is not resident is asked for together, at most."""


class PageIn:
    """Of one queue; made when it first has to wait."""

    __slots__ = ("_broker", "_queue", "_reading", "_scanning", "_waiting_gets", "is_awaited")

    def __init__(self, queue: Queue, broker: QueueContext) -> None:
        self._queue = queue
        self._broker = broker
        self._waiting_gets: list[Callable[[], None]] = []
        self._reading: dict[PagedOut, None] = {}
        self._scanning: PagedOut | None = None
        self.is_awaited = False

    @property
    def reading(self) -> list[PagedOut]:
        """The ranges that are being read."""
        return list(self._reading)

    def get(self, head: MessageRange | PagedOut, action: Callable[[], None]) -> None:
        """Runs `action` when the head of the queue has arrived."""
        self.await_head(head)
        self._waiting_gets.append(action)

    def get_after_requeue(self, action: Callable[[], None]) -> None:
        """Runs `action` as `get` does, when all is back that is coming back (`returned`)."""
        self._waiting_gets.append(action)

    def requeues_finished(self) -> None:
        """All is back."""
        if self._waiting_gets and not self.is_awaited:
            self._resume()

    def await_head(self, head: MessageRange | PagedOut) -> None:
        """The queue can't go on before this is read."""
        if isinstance(head, PagedOut):
            if not self.is_awaited:
                self.is_awaited = True
                for paged_out in self._reading:
                    self._broker.store.hurry(paged_out)
            if head not in self._reading:
                self._read_front(self._queue.backlog)
        elif not self.is_awaited:
            self.is_awaited = True
            self._broker.store.fetch(head.entry.batch, partial(self._fetched, head.entry))
            self._fetch_behind(head)

    def _fetch_behind(self, head: MessageRange) -> None:
        """Has those behind the head read too: messages that came alone have a batch each."""
        room = FETCH_AHEAD_BYTES - head.entry.batch.size_bytes
        for messages in self._queue.backlog.front(FETCH_AHEAD_ENTRIES):
            batch = messages.entry.batch
            if room <= 0:
                return
            if messages is not head and not batch.resident:
                self._broker.store.fetch(batch, _ignore)
                room -= batch.size_bytes

    def read(self, paged_out: PagedOut, *, is_urgent: bool = True) -> None:
        """Has the front of a range read, unless that is under way."""
        if paged_out not in self._reading:
            self._reading[paged_out] = None
            self._broker.store.page_in(
                paged_out, partial(self._paged_in, paged_out), is_urgent=is_urgent
            )

    def scan(self, paged_out: PagedOut) -> None:
        """Has it read when nobody waits for anything; one range at a time."""
        if self._scanning is None and paged_out not in self._reading:
            self._scanning = paged_out
            self.read(paged_out, is_urgent=False)

    def hurry(self, paged_out: PagedOut) -> None:
        """Has the front of a range read before all that nobody waits for."""
        if paged_out in self._reading:
            self._broker.store.hurry(paged_out)
        else:
            self.read(paged_out)

    def read_ahead(self, backlog: Backlog) -> None:
        """Has the next ranges read while the messages before them go out."""
        if not self._reading:
            self._read_front(backlog)

    def _read_front(self, backlog: Backlog) -> None:
        """All small ranges at the front: each would cost a turn of its own."""
        for paged_out in backlog.paged_out_within(READ_AHEAD_MESSAGES):
            self.read(paged_out)

    def _fetched(self, entry: QueueEntry) -> None:
        """What could not be read is left out; the store has said so, and still has it."""
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
            # Whoever waits goes on with what there is, whatever has gone wrong with this.
            if self.is_awaited:
                self._resume()

    def _resume(self) -> None:
        self.is_awaited = False
        getting, self._waiting_gets = self._waiting_gets, []
        for action in getting:
            self._queue.get(action)
        self._broker.wake(self._queue)
        self._broker.on_work()


def _ignore() -> None:
    """It stays where it is until the queue comes to it."""
