"""Queues longer than memory: what nobody will want soon leaves it, before any alarm.

One budget for all messages. What is on disk anyway (persistent in durable queues) is let go of
from a small amount on, since getting it back is one large read; what would have to be written for
it (transient) only when a good part of the memory limit is used. The victims, in this order:
queues that nobody consumes, then the others, the largest first; in each the newest messages, so
that those to be delivered next stay; last what was delivered and waits for its ack, the oldest
first. It stops at half of the budget, so that it does not begin again with the next message. It
works in slices, each in a turn, so what it looks at may have changed since the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from ..queue.queue import Queue
from ..slices import run_slice

if TYPE_CHECKING:
    from ..broker import Broker

MIB = 1024 * 1024
KEPT_BUDGET_BYTES = 16 * MIB
"""For what is on disk anyway; no more than an eighth of the memory limit."""
TRANSIENT_BUDGET_BYTES = 1024 * MIB
"""For what is not; no more than a quarter of the limit."""
_UNREAD_HEAD_BYTES = MIB // 4
_READ_HEAD_BYTES = 2 * MIB
"""What stays of a queue in memory, without and with consumers."""
_STEP_BYTES = 8 * MIB
"""More than this has to come in before it looks again: a look costs something for each queue."""
QUEUES_AT_ONCE = 200
_Victim = tuple[bool, int, int, Queue]
"""Whether it is read, its bytes (the most first), its id: in the order in which they go."""


class Pager:
    """Keeps the messages of a broker within the budget."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._again_at = 0
        self._steps: Iterator[None] | None = None

    def _budgets(self) -> tuple[int, int]:
        limit = self._broker.alarms.bounds.memory
        if not limit:
            return KEPT_BUDGET_BYTES, TRANSIENT_BUDGET_BYTES
        return min(KEPT_BUDGET_BYTES, limit // 8), min(TRANSIENT_BUDGET_BYTES, limit // 4)

    @property
    def is_busy(self) -> bool:
        """It is letting go, and goes on in the next turn."""
        return self._steps is not None

    def relieve(self) -> None:
        """Called after each turn; does a slice when there is more than the budget."""
        if self._steps is None:
            self._steps = self._begin()
        if self._steps is not None and not run_slice(self._steps):
            self._steps = None

    def _begin(self) -> Iterator[None] | None:
        resident = self._broker.memory.resident_bytes
        kept_budget, transient_budget = self._budgets()
        if resident <= kept_budget:
            self._again_at = 0
        if resident <= max(kept_budget, self._again_at):
            return None
        return self._relieve(kept_budget, transient_budget if resident > transient_budget else 0)

    def _relieve(self, kept_budget: int, transient_budget: int) -> Iterator[None]:
        yield from self._page_out(kept_budget // 2, transient=False)
        if transient_budget:
            yield from self._page_out(transient_budget // 2, transient=True)
        self._again_at = max(kept_budget, self._staying() + min(_STEP_BYTES, kept_budget))

    def _staying(self) -> int:
        return self._broker.memory.resident_bytes - self._broker.store.leaving_bytes

    def _page_out(self, target: int, *, transient: bool) -> Iterator[None]:
        """Until no more than the target stays, or nothing is left that can go."""

        def enough() -> bool:
            return self._staying() <= target

        chunks: list[list[_Victim]] = []
        for chunk in self._victims():
            chunks.append(chunk)
            yield
        share = target // max(1, sum(map(len, chunks)))
        for _, _, _, queue in merge(*chunks):
            if enough():
                return
            head = min(share, _READ_HEAD_BYTES if queue.has_consumers else _UNREAD_HEAD_BYTES)
            yield from queue.page_out(head, transient=transient, enough=enough)
            yield
        yield from self._page_out_unacked(enough, transient=transient)

    def _victims(self) -> Iterator[list[_Victim]]:
        """Queues with messages, some at a time; each list is in order."""
        queues = (
            queue
            for vhost in list(self._broker.vhosts.values())
            for queue in (*vhost.queues.values(), *vhost.inner_queues.values())
        )
        while some := list(islice(queues, QUEUES_AT_ONCE)):
            yield sorted(
                (held.has_consumers, -held.estimated_bytes, held.id, held)
                for held in some
                if held.ready_count
            )

    def _page_out_unacked(self, enough: Callable[[], bool], *, transient: bool) -> Iterator[None]:
        broker = self._broker
        for connection in list(broker.connections):
            for channel in list(connection.channels.values()):
                for messages in channel.unacked.ranges():
                    if enough():
                        return
                    batch = messages.entry.batch
                    if batch.resident and (transient or batch.location is not None):
                        broker.store.evict(batch)
                    yield
