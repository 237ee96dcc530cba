"""Queues longer than memory: what nobody will want soon leaves it, before any alarm.

One budget for all messages. What is on disk anyway (persistent in durable queues) is let go of
from a small amount on, since getting it back is one large read; what would have to be written for
it (transient) only when a good part of the memory limit is used. The victims, in this order:
queues that nobody consumes, then the others, the largest first; in each the newest messages, so
that those to be delivered next stay; last what was delivered and waits for its ack, the oldest
first. It stops at half of the budget, so that it does not begin again with the next message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .queue.queue import Queue

if TYPE_CHECKING:
    from .broker import Broker

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


class Pager:
    """Keeps the messages of a broker within the budget."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._again_at = 0

    def _budgets(self) -> tuple[int, int]:
        limit = self._broker.alarms.bounds.memory
        if not limit:
            return KEPT_BUDGET_BYTES, TRANSIENT_BUDGET_BYTES
        return min(KEPT_BUDGET_BYTES, limit // 8), min(TRANSIENT_BUDGET_BYTES, limit // 4)

    def relieve(self) -> None:
        """Called after each turn; does something when there is more than the budget."""
        resident = self._broker.memory.resident_bytes
        kept_budget, transient_budget = self._budgets()
        if resident <= kept_budget:
            self._again_at = 0
        if resident <= max(kept_budget, self._again_at):
            return
        transient = resident > transient_budget
        self._page_out(kept_budget // 2, transient=False)
        if transient:
            self._page_out(transient_budget // 2, transient=True)
        self._again_at = max(kept_budget, self._staying() + min(_STEP_BYTES, kept_budget))

    def _staying(self) -> int:
        return self._broker.memory.resident_bytes - self._broker.store.leaving_bytes

    def _page_out(self, target: int, *, transient: bool) -> None:
        """Until no more than the target stays, or nothing is left that can go."""

        def enough() -> bool:
            return self._staying() <= target

        victims = self._victims()
        share = target // max(1, len(victims))
        for queue in victims:
            if enough():
                return
            head = min(share, _READ_HEAD_BYTES if queue.is_read else _UNREAD_HEAD_BYTES)
            queue.page_out(head, transient=transient, enough=enough)
        self._page_out_unacked(target, transient=transient)

    def _victims(self) -> list[Queue]:
        queues = [
            queue
            for vhost in self._broker.vhosts.values()
            for queue in (*vhost.queues.values(), *vhost.inner_queues.values())
            if queue.ready_count
        ]
        queues.sort(key=lambda queue: (queue.is_read, -queue.about_bytes))
        return queues

    def _page_out_unacked(self, target: int, *, transient: bool) -> None:
        broker = self._broker
        for connection in broker.connections:
            for channel in connection.channels.values():
                for span in channel.unacked.spans():
                    if self._staying() <= target:
                        return
                    block = span.run.block
                    if block.resident and (transient or block.place is not None):
                        broker.store.evict(block)
