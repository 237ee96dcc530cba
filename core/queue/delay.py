"""Delayed messages: what an `x-delayed-message` exchange holds until each message is due.

Nobody consumes here. When its time has come a message is moved to where the exchange's bindings
lead then (`core/republish/delayed.py`), in the order of the times, and of publishing where these
are equal. Times are monotonic while the process lives; after a restart what is left is reckoned by
the time of day at which the message came, at least nothing and at most all of its delay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..message.batch import Batch, MessageRange, PagedOut, QueueEntry
from ..wire.delay import kept_wait_ms
from .due import Due
from .queue import Queue
from .registry import INNER_MARK, register_inner

if TYPE_CHECKING:
    from ..message.model import Table
    from ..timers import Timer
    from .context import QueueContext
    from .rules import Rules

RELEASED = "released"
"""The reason for which messages leave."""
RELEASES_AT_ONCE = 500
"""About 2 ms."""
_READS_AT_ONCE = 256


@register_inner("delay")
class DelayQueue(Queue):
    """Each message is a range of its own, in the backlog by arrival and in `_due` by its time.

    `_unread` are messages of an earlier process, batch by batch, whose bytes have to be read before
    their time is known; until then nothing is released, so that the order is right.
    """

    __slots__ = ("_due", "_fetching", "_timer", "_unread")

    def __init__(
        self,
        name: str,
        vhost: str,
        broker: QueueContext,
        queue_id: int,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        owner: object | None = None,
        arguments: Table | None = None,
        rules: Rules | None = None,
    ) -> None:
        super().__init__(
            name, vhost, broker, queue_id, durable=durable, auto_delete=auto_delete, owner=owner,
            arguments=arguments, rules=rules,
        )  # fmt: skip
        self._due = Due()
        self._unread: list[list[MessageRange]] = []
        self._fetching = 0
        self._timer: Timer | None = None

    @property
    def exchange(self) -> str:
        """The name of the exchange that it belongs to."""
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
        """Hands on what is due; True if there is more of it than `budget`."""
        if self._fetching or self._backlog is None or self._backlog.paged_out_ranges:
            return False
        budget = min(budget, RELEASES_AT_ONCE)
        now_ms = self._broker.now_ms
        missing, more = self._due.move_near(now_ms, budget)
        for batch in missing:
            self._broker.store.fetch(batch, _ignore)
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
        """All but what is due soon may go; a few bytes of each message stay."""
        store = self._broker.store

        def evict(batch: Batch) -> bool:
            if enough() or not (transient or batch.location is not None):
                return False
            return store.evict(batch)

        return self._due.evict_far(self._broker.now_ms, evict)

    # -- times

    def _schedule(self, messages: MessageRange, came_ms: int) -> None:
        now_ms = self._broker.now_ms
        delay_ms = kept_wait_ms(messages.entry.batch.properties(messages.entry.index(messages.low)))
        # The clock may have been set since: what is left is at most all of the delay.
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

    # -- what an earlier process left

    def recover(self, held: Sequence[PagedOut | MessageRange]) -> None:
        for part in held:
            if isinstance(part, PagedOut):
                self.backlog.append_range(part)
                continue
            singles = list(_singles(part))
            for messages in singles:
                self.backlog.append_range(messages)
            self._unread.append(singles)
        self._read_on()

    def _read_on(self) -> None:
        """Reads on: ranges in large pieces, then single batches, many at a time."""
        paged_out = self.backlog.first_paged_out()
        if paged_out is not None:
            self.page_in_requests.read(paged_out)
            return
        wanted, self._unread = self._unread[:_READS_AT_ONCE], self._unread[_READS_AT_ONCE:]
        self._fetching = len(wanted)
        for singles in wanted:
            self._broker.store.fetch(singles[0].entry.batch, partial(self._on_fetched, singles))
        if not wanted:
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
        """A batch has been read, or can't be; the store has said so, and still has it."""
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
    """It is in memory, and nobody waits for it."""
