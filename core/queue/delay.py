"""Delayed messages: what an `x-delayed-message` exchange holds until each message is due.

Nobody consumes here. When its time has come a message is moved to where the exchange's bindings
lead then (`core/release.py`), in the order of the times, and of publishing where these are equal.
Times are monotonic while the process lives; after a restart what is left is reckoned by the time
of day at which the message came, at least nothing and at most all of its delay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..block import Block, Cold, Run, Span
from ..wire.delay import kept_wait_ms
from .due import Due
from .queue import Queue
from .registry import INNER_MARK, register_inner

if TYPE_CHECKING:
    from ..model import Table
    from ..timers import Timer
    from .rules import Rules
    from .surroundings import Surroundings

RELEASED = "released"
"""The reason for which messages leave."""
RELEASES_AT_ONCE = 500
"""About 2 ms."""
_READS_AT_ONCE = 256


@register_inner("delay")
class DelayQueue(Queue):
    """Each message is a span of its own, in the backlog by arrival and in `_due` by its time.

    `_unseen` are messages of an earlier process, block by block, whose bytes have to be read before
    their time is known; until then nothing is released, so that the order is right.
    """

    __slots__ = ("_appointment", "_coming", "_due", "_unseen")

    def __init__(
        self,
        name: str,
        vhost: str,
        broker: Surroundings,
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
        self._unseen: list[list[Span]] = []
        self._coming = 0
        self._appointment: Timer | None = None

    @property
    def exchange(self) -> str:
        """The name of the exchange that it belongs to."""
        return self.name.split(INNER_MARK, 1)[1]

    @property
    def _looks_at_each(self) -> bool:
        return True

    def enqueue(self, run: Run) -> None:
        for span in _singles(Span(run, 0, run.count)):
            self.backlog.freeze(span)
            self._hold(span, self._broker.now_ms)
        self._appoint()

    def pump(self, budget: int) -> bool:
        """Hands on what is due; True if there is more of it than `budget`."""
        if self._coming or self._backlog is None or self._backlog.cold_stretches:
            return False
        budget = min(budget, RELEASES_AT_ONCE)
        now_ms = self._broker.now_ms
        missing, more = self._due.draw_near(now_ms, budget)
        for block in missing:
            self._broker.store.fetch(block, _nothing)
        for _ in range(budget):
            span = self._due.take(now_ms)
            if span is None:
                self._appoint()
                return more
            self._broker.dead_letter(self, self._backlog.empty(span), RELEASED)
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

        def evict(block: Block) -> bool:
            if enough() or not (transient or block.place is not None):
                return False
            return store.evict(block)

        return self._due.let_go(self._broker.now_ms, evict)

    # -- times

    def _hold(self, span: Span, came_ms: int) -> None:
        now_ms = self._broker.now_ms
        delay_ms = kept_wait_ms(span.run.block.properties(span.run.index(span.low)))
        # The clock may have been set since: what is left is at most all of the delay.
        self._due.add(min(came_ms, now_ms) + delay_ms, span, now_ms)

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

    def recover(self, held: Sequence[Cold | Span]) -> None:
        for part in held:
            if isinstance(part, Cold):
                self.backlog.freeze(part)
                continue
            singles = list(_singles(part))
            for span in singles:
                self.backlog.freeze(span)
            self._unseen.append(singles)
        self._see_on()

    def _see_on(self) -> None:
        """Reads on: stretches in large pieces, then single blocks, many at a time."""
        cold = self.backlog.first_cold()
        if cold is not None:
            self.arrivals.read(cold)
            return
        wanted, self._unseen = self._unseen[:_READS_AT_ONCE], self._unseen[_READS_AT_ONCE:]
        self._coming = len(wanted)
        for singles in wanted:
            self._broker.store.fetch(singles[0].run.block, partial(self._saw, singles))
        if not wanted:
            self._broker.wake(self)
            self._broker.on_work()

    def thawed(self, cold: Cold, spans: Sequence[Span]) -> None:
        if self._backlog is None:
            return
        singles = [single for span in spans for single in _singles(span)]
        self._backlog.thawed(cold, singles)
        self._know(singles)
        self._see_on()

    def _saw(self, singles: Sequence[Span]) -> None:
        """A block has been read, or can't be; the store has said so, and still has it."""
        self._coming -= 1
        if singles[0].run.block.resident:
            self._know([span for span in singles if span.count])
        else:
            for span in singles:
                self.backlog.empty(span)
        if not self._coming:
            self._see_on()

    def _know(self, singles: Sequence[Span]) -> None:
        for span in singles:
            self._hold(span, span.run.block.arrived_ms)
        for _ in self.page_out(0, transient=False):
            pass  # These few were just read.


def _singles(span: Span) -> Iterator[Span]:
    for position in range(span.low, span.high):
        yield Span(span.run, position, position + 1, span.redelivered)


def _nothing() -> None:
    """It is in memory, and nobody waits for it."""
