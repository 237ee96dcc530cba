"""The inner queue of an `x-delayed-message` exchange: messages wait here until they are due.

It has no consumers. When a message is due, it is routed by the bindings that the exchange has then
(`core/republish/delayed.py`), in the order of due times, and of publishing where these are equal.
Due times are monotonic while the process lives; after a restart the delay left is computed from the
time of day at which the message arrived, and is at least 0 and at most the whole delay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ..message.batch import Batch
from ..message.queue_entry import MessageRange, PagedOut, QueueEntry
from ..wire.delay import delay_ms_of
from .classic import ClassicQueue
from .due import DueHeap
from .names import INNER_MARK

if TYPE_CHECKING:
    from ..timers import Timer

RELEASED: Final = "released"
"""The reason passed on with messages that are due."""
RELEASES_AT_ONCE: Final = 500
"""Messages released in one turn, about 2 ms."""
_READS_AT_ONCE: Final = 256


class DelayQueue(ClassicQueue):
    """The inner queue of a delayed exchange. Each message is a range of its own, in the backlog by
    arrival and in `_due` by due time.

    `_unread` are messages of an earlier process, batch by batch, whose bytes have to be read before
    their due time is known; until then nothing is released, so that the order is right.
    """

    __slots__ = ("_due", "_fetching", "_timer", "_unread")

    def _initialise(self) -> None:
        super()._initialise()
        self._due = DueHeap()
        self._unread: list[list[MessageRange]] = []
        self._fetching = 0
        self._timer: Timer | None = None

    @property
    def exchange(self) -> str:
        """The name of the exchange it belongs to."""
        return self.name.split(INNER_MARK, 1)[1]

    @property
    def _checks_each_message(self) -> bool:
        return True

    def enqueue(self, entry: QueueEntry) -> None:
        for messages in _singles(MessageRange(entry, 0, entry.count)):
            self.backlog.append_range(messages)
            self._schedule(messages, self._broker.now_ms)
        self._set_timer()

    def dispatch(self, budget: int) -> bool:
        """Releases messages that are due; True if there are more than `budget`."""
        if self._fetching or self._backlog is None or self._backlog.paged_out_ranges:
            return False
        budget = min(budget, RELEASES_AT_ONCE)
        now_ms = self._broker.now_ms
        missing, more = self._due.promote_due_soon(now_ms, budget)
        for batch in missing:
            self._broker.store.batches.fetch(batch, _ignore)
        for _ in range(budget):
            messages = self._due.take(now_ms)
            if messages is None:
                self._set_timer()
                return more
            self._broker.dead_letter(self, self._backlog.empty(messages), RELEASED)
        return True

    def purge(self, done: Callable[[], None] = lambda: None) -> int:
        self._due.clear()
        self._unread.clear()
        if self._timer is not None:
            self._timer.cancel()
        return super().purge(done)

    def page_out(
        self, head_bytes: int, *, transient: bool, enough: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """As in the base, except messages due soon; a few bytes of each message stay."""
        store = self._broker.store

        def evict(batch: Batch) -> bool:
            if enough() or not (transient or batch.location is not None):
                return False
            return store.batches.evict(batch)

        return self._due.evict_not_due_soon(self._broker.now_ms, evict)

    # -- due times

    def _schedule(self, messages: MessageRange, came_ms: int) -> None:
        now_ms = self._broker.now_ms
        delay_ms = delay_ms_of(messages.entry.batch.properties(messages.entry.index(messages.low)))
        # The clock may have been set since: the delay left is at most the whole delay.
        self._due.add(min(came_ms, now_ms) + delay_ms, messages, now_ms)

    def _set_timer(self) -> None:
        at_ms, timer = self._due.next_ms, self._timer
        if at_ms is None:
            return
        if timer is not None:
            if timer.action is not None and timer.at_ms <= at_ms:
                return
            timer.cancel()
        self._timer = self._broker.timers.at(at_ms, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._broker.wake(self)

    # -- recovery

    def recover(self, paged_out_ranges: Sequence[PagedOut | MessageRange]) -> None:
        for part in paged_out_ranges:
            if isinstance(part, PagedOut):
                self.backlog.append_range(part)
                continue
            singles = list(_singles(part))
            for messages in singles:
                self.backlog.append_range(messages)
            self._unread.append(singles)
        self._read_on()

    def _read_on(self) -> None:
        """Reads the next messages: first paged-out ranges, then single batches, many at a time."""
        paged_out = self.backlog.first_paged_out()
        if paged_out is not None:
            self.page_in_requests.read(paged_out)
            return
        batches, self._unread = self._unread[:_READS_AT_ONCE], self._unread[_READS_AT_ONCE:]
        self._fetching = len(batches)
        for singles in batches:
            self._broker.store.batches.fetch(
                singles[0].entry.batch, partial(self._on_fetched, singles)
            )
        if not batches:
            self._broker.wake(self)
            self._broker.on_work()

    def paged_in(self, paged_out: PagedOut, ranges: Sequence[MessageRange]) -> None:
        if self._backlog is None:
            return
        singles = [single for messages in ranges for single in _singles(messages)]
        self._backlog.paged_in(paged_out, singles)
        self._schedule_all(singles)
        self._read_on()

    def _on_fetched(self, singles: Sequence[MessageRange]) -> None:
        """Schedules the messages of a batch that was read, or drops them if it can't be read; the
        store has logged that, and keeps them."""
        self._fetching -= 1
        if singles[0].entry.batch.resident:
            self._schedule_all([messages for messages in singles if messages.count])
        else:
            for messages in singles:
                self.backlog.empty(messages)
        if not self._fetching:
            self._read_on()

    def _schedule_all(self, singles: Sequence[MessageRange]) -> None:
        for messages in singles:
            self._schedule(messages, messages.entry.batch.arrived_ms)
        for _ in self.page_out(0, transient=False):
            pass  # These few were just read.


def _singles(messages: MessageRange) -> Iterator[MessageRange]:
    for position in range(messages.low, messages.high):
        yield MessageRange(messages.entry, position, position + 1, messages.redelivered)


def _ignore() -> None:
    """Does nothing when a batch is in memory: nothing waits for it."""
