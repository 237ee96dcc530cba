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

    `_unseen` are messages of an earlier process, batch by batch, whose bytes have to be read before
    their time is known; until then nothing is released, so that the order is right.
    """

    __slots__ = ("_appointment", "_coming", "_due", "_unseen")

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
        self._unseen: list[list[MessageRange]] = []
        self._coming = 0
        self._appointment: Timer | None = None

    @property
    def exchange(self) -> str:
        """The name of the exchange that it belongs to."""
        return self.name.split(INNER_MARK, 1)[1]

    @property
    def _looks_at_each(self) -> bool:
        return True

    def enqueue(self, entry: QueueEntry) -> None:
        for messages in _singles(MessageRange(entry, 0, entry.count)):
            self.backlog.freeze(messages)
            self._hold(messages, self._broker.now_ms)
        self._appoint()

    def dispatch(self, budget: int) -> bool:
        """Hands on what is due; True if there is more of it than `budget`."""
        if self._coming or self._backlog is None or self._backlog.paged_out_ranges:
            return False
        budget = min(budget, RELEASES_AT_ONCE)
        now_ms = self._broker.now_ms
        missing, more = self._due.draw_near(now_ms, budget)
        for batch in missing:
            self._broker.store.fetch(batch, _nothing)
        for _ in range(budget):
            messages = self._due.take(now_ms)
            if messages is None:
                self._appoint()
                return more
            self._broker.dead_letter(self, self._backlog.empty(messages), RELEASED)
        return True

    def purge(self, done: Callable[[], None] = lambda: None) -> int:
        self._due.clear()
        self._unseen.clear()
        if self._appointment is not None:
            self._appointment.cancel()
        return super().purge(done)

    def page_out(
        self, head_bytes: int, *, transient: bool, enough: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """All but what is due soon may go; a few bytes of each message stay."""
        store = self._broker.store

        def evict(batch: Batch) -> bool:
            if enough() or not (transient or batch.place is not None):
                return False
            return store.evict(batch)

        return self._due.let_go(self._broker.now_ms, evict)

    # -- times

    def _hold(self, messages: MessageRange, came_ms: int) -> None:
        now_ms = self._broker.now_ms
        delay_ms = kept_wait_ms(messages.entry.batch.properties(messages.entry.index(messages.low)))
        # The clock may have been set since: what is left is at most all of the delay.
        self._due.add(min(came_ms, now_ms) + delay_ms, messages, now_ms)

    def _appoint(self) -> None:
        at_ms, timer = self._due.next_ms, self._appointment
        if at_ms is None:
            return
        if timer is not None:
            if timer.action is not None and timer.at_ms <= at_ms:
                return
            timer.cancel()
        self._appointment = self._broker.timers.at(at_ms, self._keep_appointment)

    def _keep_appointment(self) -> None:
        self._appointment = None
        self._broker.wake(self)

    # -- what an earlier process left

    def recover(self, held: Sequence[PagedOut | MessageRange]) -> None:
        for part in held:
            if isinstance(part, PagedOut):
                self.backlog.freeze(part)
                continue
            singles = list(_singles(part))
            for messages in singles:
                self.backlog.freeze(messages)
            self._unseen.append(singles)
        self._see_on()

    def _see_on(self) -> None:
        """Reads on: ranges in large pieces, then single batches, many at a time."""
        paged_out = self.backlog.first_paged_out()
        if paged_out is not None:
            self.arrivals.read(paged_out)
            return
        wanted, self._unseen = self._unseen[:_READS_AT_ONCE], self._unseen[_READS_AT_ONCE:]
        self._coming = len(wanted)
        for singles in wanted:
            self._broker.store.fetch(singles[0].entry.batch, partial(self._saw, singles))
        if not wanted:
            self._broker.wake(self)
            self._broker.on_work()

    def paged_in(self, paged_out: PagedOut, ranges: Sequence[MessageRange]) -> None:
        if self._backlog is None:
            return
        singles = [single for messages in ranges for single in _singles(messages)]
        self._backlog.paged_in(paged_out, singles)
        self._know(singles)
        self._see_on()

    def _saw(self, singles: Sequence[MessageRange]) -> None:
        """A batch has been read, or can't be; the store has said so, and still has it."""
        self._coming -= 1
        if singles[0].entry.batch.resident:
            self._know([messages for messages in singles if messages.count])
        else:
            for messages in singles:
                self.backlog.empty(messages)
        if not self._coming:
            self._see_on()

    def _know(self, singles: Sequence[MessageRange]) -> None:
        for messages in singles:
            self._hold(messages, messages.entry.batch.arrived_ms)
        for _ in self.page_out(0, transient=False):
            pass  # These few were just read.


def _singles(messages: MessageRange) -> Iterator[MessageRange]:
    for position in range(messages.low, messages.high):
        yield MessageRange(messages.entry, position, position + 1, messages.redelivered)


def _nothing() -> None:
    """It is in memory, and nobody waits for it."""
