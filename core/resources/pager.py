"""Pages out messages that will not be delivered soon, before there is a memory alarm.

There is one budget for all messages. Messages that are on disk already (persistent in durable
queues) are paged out beyond a small budget, since reading them back is one large read; those that
have to be written first (transient) only when a good part of the memory limit is used. The order:
queues without consumers, then the others, the largest first; in each the newest messages, so that
those to be delivered next stay; last the unacknowledged ones, the oldest first. It stops at half of
the budget, so that it does not begin again with the next message. It works in slices, one in a
turn, so queues may have changed since the one before.
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
"""For messages that are on disk already; at most an eighth of the memory limit."""
TRANSIENT_BUDGET_BYTES = 1024 * MIB
"""For messages that are not on disk; at most a quarter of the memory limit."""
_UNREAD_HEAD_BYTES = MIB // 4
_READ_HEAD_BYTES = 2 * MIB
"""Bytes of a queue that stay in memory, without and with consumers."""
_STEP_BYTES = 8 * MIB
"""Bytes that have to come in before it begins again: each pass visits all queues."""
QUEUES_AT_ONCE = 200
_Victim = tuple[bool, int, int, Queue]
"""Whether it is read, its bytes (the most first), its id: in the order in which they go."""


class Pager:
    """Keeps the messages of a broker within the memory budget."""

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
        """Whether it is paging out, and continues in the next turn."""
        return self._steps is not None

    def relieve(self) -> None:
        """Called after each turn; pages out a slice when there is more than the budget."""
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
        """Pages out until no more than the target stays in memory, as far as messages can go."""

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
        """Queues with messages, in chunks; each chunk is sorted."""
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
