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

from collections.abc import Callable, Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Final

from ..queue.queue import Queue
from ..slices import run_slice

if TYPE_CHECKING:
    from ..context import BrokerContext
    from ..vhost import VirtualHost

MIB: Final = 1024 * 1024
KEPT_BUDGET_BYTES: Final = 16 * MIB
"""For messages that are on disk already; at most an eighth of the memory limit."""
TRANSIENT_BUDGET_BYTES: Final = 1024 * MIB
"""For messages that are not on disk; at most a quarter of the memory limit."""
_UNREAD_HEAD_BYTES: Final = MIB // 4
_READ_HEAD_BYTES: Final = 2 * MIB
"""Bytes of a queue that stay in memory, without and with consumers."""
_STEP_BYTES: Final = 8 * MIB
"""Bytes that have to arrive before the next pass, which visits all queues."""
QUEUES_AT_ONCE: Final = 200
_Candidate = tuple[bool, int, int, Queue]
"""Whether it has consumers, its bytes (negative), its id, the queue: in order of paging out."""


class Pager:
    """Keeps the messages of a broker within the memory budget."""

    def __init__(self, broker: BrokerContext, vhosts: Mapping[str, VirtualHost]) -> None:
        self._broker = broker
        self._vhosts = vhosts
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

    def page_out_slice(self) -> None:
        """Pages out a slice if messages take more than the budget; called in each turn."""
        if self._steps is None:
            self._steps = self._begin()
        if self._steps is not None and not run_slice(self._steps, self._broker.clock):
            self._steps = None

    def _begin(self) -> Iterator[None] | None:
        resident = self._broker.memory.resident_bytes
        resident_budget, transient_budget = self._budgets()
        if resident <= resident_budget:
            self._again_at = 0
        if resident <= max(resident_budget, self._again_at):
            return None
        return self._page_out_over_budget(
            resident_budget, transient_budget if resident > transient_budget else 0
        )

    def _page_out_over_budget(self, resident_budget: int, transient_budget: int) -> Iterator[None]:
        yield from self._page_out(resident_budget // 2, transient=False)
        if transient_budget:
            yield from self._page_out(transient_budget // 2, transient=True)
        self._again_at = max(
            resident_budget, self._remaining_bytes() + min(_STEP_BYTES, resident_budget)
        )

    def _remaining_bytes(self) -> int:
        return self._broker.memory.resident_bytes - self._broker.store.batches.leaving_bytes

    def _page_out(self, target: int, *, transient: bool) -> Iterator[None]:
        """Pages out until no more than the target stays in memory, as far as messages can go."""

        def enough() -> bool:
            return self._remaining_bytes() <= target

        chunks: list[list[_Candidate]] = []
        for chunk in self._candidates():
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

    def _candidates(self) -> Iterator[list[_Candidate]]:
        """Yields the queues with messages, in sorted chunks."""
        queues = (
            queue
            for vhost in list(self._vhosts.values())
            for queue in (*vhost.queues.values(), *vhost.inner_queues.values())
        )
        while some := list(islice(queues, QUEUES_AT_ONCE)):
            yield sorted(
                (queue.has_consumers, -queue.estimated_bytes, queue.id, queue)
                for queue in some
                if queue.ready_count
            )

    def _page_out_unacked(self, enough: Callable[[], bool], *, transient: bool) -> Iterator[None]:
        broker = self._broker
        for connection in list(broker.connections):
            for messages in connection.unacked():
                if enough():
                    return
                batch = messages.entry.batch
                if batch.resident and (transient or batch.location is not None):
                    broker.store.batches.evict(batch)
                yield
