"""Classic and quorum queues: messages are delivered to consumers in turn until acknowledged.

A quorum queue is this class with rules of its own (`arguments.py`). Optional parts are in modules
of their own: order (`backlog`, `priority`), consumers (`consumer`, `single_active`), counts of
returns and delayed retries (`redelivery`); dead letters are the broker's (`core/republish`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ..message.batch import Batch, MessageRange
from .backlog_queue import BacklogQueue
from .consumer import Consumer, ConsumerRing
from .queue import DISPATCH_BYTES
from .redelivery import DelayedRetries, RedeliveryCounter
from .rules import Rules
from .single_active import SingleActiveRing

if TYPE_CHECKING:
    from ..store.port import ManySettled

LOGGED_AHEAD: Final = 10_000
"""Sequence numbers that a logged delivery mark is ahead of a get, so that few gets log one."""


class ClassicQueue(BacklogQueue):
    """A queue whose messages are removed when they are acknowledged."""

    __slots__ = (
        "_delayed_retries", "_delivered_by_priority", "_dispatch_pauses", "_logged_up_to",
        "_redeliveries", "delivered_sequence",
    )  # fmt: skip

    def _initialise(self) -> None:
        super()._initialise()
        self._logged_up_to = 0
        """The highest sequence number logged as possibly delivered."""
        self._dispatch_pauses = 0
        """Reasons for which nothing is dispatched just now."""
        self.delivered_sequence = 0
        self._delivered_by_priority: dict[int, int] | None = {} if self.has_priorities else None
        """The highest number delivered of each priority: lower ones may still be ready."""
        self._delayed_retries: DelayedRetries | None = None
        self._redeliveries: RedeliveryCounter | None = None

    def _activate(self, rules: Rules) -> None:
        super()._activate(rules)
        if rules.delivery_limit is not None:
            if self._redeliveries is None:
                self._redeliveries = RedeliveryCounter(
                    self._broker, self.id, durable=self.durable, quorum=self.kind == "quorum"
                )
        elif self._redeliveries is not None:
            self._redeliveries.end()
            self._redeliveries = None

    @property
    def highest_delivered(self) -> dict[tuple[int, int | None], int]:
        if self._delivered_by_priority is None:
            return {(self.id, None): self.delivered_sequence}
        found: dict[tuple[int, int | None], int] = {(self.id, None): 0}
        for priority, sequence in self._delivered_by_priority.items():
            found[self.id, priority] = sequence
        return found

    # -- dispatch to consumers

    def dispatch(self, budget: int) -> bool:
        if self.expiry is not None and self.expiry.is_pressing:
            budget = max(budget, self.ready_count)
        more = self._dispatch(budget)
        if self.expiry is not None:
            self.expire()
        if not more:
            self._drop_excess()
        return more

    def _dispatch(self, budget: int) -> bool:
        more = self._dispatch_in_turn(budget)
        backlog = self._backlog
        if backlog is not None and backlog.paged_out_ranges and self.ring is not None:
            self.page_in_requests.read_ahead(backlog)
        return more

    def _dispatch_in_turn(self, budget: int) -> bool:
        ring, backlog = self.ring, self._backlog
        if ring is None or backlog is None or self._dispatch_pauses:
            return False
        turns = quantum = 0
        while backlog.count:
            consumers = ring.ready_consumers()
            if consumers is None:
                return False
            if budget <= 0:
                return True
            consumer = consumers[0]
            credit = consumer.credit()
            if credit <= 0:
                consumers.popleft()
                consumer.open = False
                continue
            if turns == 0:
                turns = len(consumers)
                # A round fits the budget, or those at its end would get less.
                quantum = max(1, min(budget, backlog.count) // turns)
            turns -= 1
            consumers.rotate(-1)
            delivered = self._dispatch_to(consumer, min(quantum, credit))
            if delivered == 0:
                # Messages are being read from disk, and then it is still this consumer's turn.
                consumers.rotate(1)
                return False
            budget -= delivered
        return False

    def _dispatch_to(self, consumer: Consumer, limit: int) -> int:
        delivered = 0
        while delivered < limit:
            messages = self.dequeue(limit - delivered)
            if messages is None:
                break
            delivered += messages.high - messages.low
            if self._redeliveries is None:
                consumer.session.deliver(consumer, messages)
            else:
                rewritten = self._redeliveries.with_headers(messages)
                consumer.session.deliver(consumer, messages, rewritten)
            if not consumer.session.writable:
                break
        return delivered

    def dequeue(self, limit: int) -> MessageRange | None:
        backlog = self._backlog
        if backlog is None:
            return None
        expiry = self.expiry
        head = backlog.head()
        while isinstance(head, MessageRange) and expiry is not None and expiry.is_expired(head):
            self._dead_letter_expired(backlog.empty(head))
            head = backlog.head()
        if not isinstance(head, MessageRange):
            if head is not None:
                self.page_in_requests.await_head(head)
            return None
        batch = head.entry.batch
        if not batch.resident:
            self.page_in_requests.await_head(head)
            return None
        size = batch.size_bytes
        if size > DISPATCH_BYTES:
            limit = min(limit, max(1, DISPATCH_BYTES * batch.count // size))
        messages = backlog.take(head, limit)
        self.unacked_count += messages.high - messages.low
        self._subtract_bytes(messages)
        if self.durable:
            self._note_delivered(messages)
        return messages

    def _note_delivered(self, messages: MessageRange) -> None:
        last = messages.entry.sequence(messages.high - 1)
        if last > self.delivered_sequence:
            self.delivered_sequence = last
            if last > self._logged_up_to and not self.has_consumers:
                self._logged_up_to = last + LOGGED_AHEAD
                self._broker.store.delivered(self, self._logged_up_to)
        if self._delivered_by_priority is not None:
            priority = messages.entry.batch.attributes.priority
            before = self._delivered_by_priority.get(priority, 0)
            self._delivered_by_priority[priority] = max(before, last)

    def with_headers(self, messages: MessageRange) -> MessageRange:
        return messages if self._redeliveries is None else self._redeliveries.with_headers(messages)

    @property
    def has_ready_consumer(self) -> bool:
        if self.ring is None or self.ready_count:
            return False
        return self.ring.can_take_one()

    def add_consumer(self, consumer: Consumer) -> None:
        if self.ring is None:
            single = self.rules is not None and self.rules.single_active
            self.ring = SingleActiveRing() if single else ConsumerRing()
        if self.durable and self.ready_count and not self.has_consumers:
            self._log_deliverable()
        self.ring.add(consumer)
        if consumer.exclusive:
            self.exclusive_consumer = consumer
        self._broker.wake(self)

    def _log_deliverable(self) -> None:
        """Logs that the ready messages may be delivered from now on, so that they are flagged
        redelivered after a crash; dispatch waits until that is on disk. Messages that arrive while
        there are consumers are logged with that mark, so deliveries write nothing."""
        store = self._broker.store
        self._logged_up_to = store.reserve(0) - 1
        self._dispatch_pauses += 1
        self._broker.when_kept(store.delivered(self, self._logged_up_to), self._resume_dispatch)

    def _resume_dispatch(self) -> None:
        self._dispatch_pauses -= 1
        self._broker.wake(self)
        self._broker.on_work()

    # -- basic.get

    def get(self, action: Callable[[], None]) -> None:
        if self._requeues:
            self.page_in_requests.get_after_requeue(action)
            return
        commit = self._log_get()
        if commit:
            self._broker.when_kept(commit, lambda: self._get(action))
        else:
            self._get(action)

    def _log_get(self) -> int:
        """Logs that the oldest message may be delivered, so that it is flagged redelivered after a
        crash. Returns the commit to wait for, 0 if it is logged already."""
        head = None if self._backlog is None else self._backlog.head()
        if not self.durable or self.has_consumers or not isinstance(head, MessageRange):
            return 0
        if head.sequence > self._logged_up_to:
            self._logged_up_to = head.sequence + LOGGED_AHEAD
        return self._broker.store.delivered(self, self._logged_up_to)

    def _get(self, action: Callable[[], None]) -> None:
        head = None if self._backlog is None else self._backlog.head()
        if head is None or (isinstance(head, MessageRange) and head.entry.batch.resident):
            action()
            return
        self.page_in_requests.get(head, action)

    # -- settling

    def settle(self, messages: MessageRange) -> None:
        self.unacked_count -= messages.high - messages.low
        if self.durable and not self.deleted:
            self._broker.store.settle(self, messages)
        if self._redeliveries is not None and not self.deleted:
            self._redeliveries.forget(messages)

    def note_settled(self, messages: MessageRange, many: ManySettled) -> None:
        if self.durable:
            many.note(self.id, messages)

    def count_settled(self, messages: MessageRange, many: ManySettled) -> None:
        self.unacked_count -= messages.high - messages.low
        if self.durable and not self.deleted:
            many.count(messages)
        if self._redeliveries is not None and not self.deleted:
            self._redeliveries.forget(messages)

    def settle_dead_lettered(self, messages: MessageRange) -> None:
        if self.deleted:
            return
        if self.durable:
            self._broker.store.settle(self, messages)
        if self._redeliveries is not None:
            self._redeliveries.forget(messages)

    # -- requeueing

    @property
    def counts_redeliveries(self) -> bool:
        return self._redeliveries is not None

    @property
    def _delivery_limit(self) -> int | None:
        """The highest number of returns, None for no limit."""
        limit = None if self.rules is None else self.rules.delivery_limit
        return None if limit is None or limit < 0 else limit

    def begin_requeue(self, messages: MessageRange, *, failed: bool = True) -> list[MessageRange]:
        self.unacked_count -= messages.high - messages.low
        if self.deleted:
            return []
        if self._redeliveries is None:
            return [MessageRange(messages.entry, messages.low, messages.high, True)]
        back: list[MessageRange] = []
        limit = self._delivery_limit
        for part, returns in self._redeliveries.count_returns(messages, failed=failed):
            if limit is not None and returns.counted > limit:
                self._broker.dead_letter(self, part, "delivery_limit")
            elif not self._delays_retry(part, returns.total, failed=failed):
                back.append(part)
        return back

    def finish_requeue(self, messages: MessageRange) -> None:
        if self.deleted:
            return
        requeued = self.backlog.requeue(messages)
        if self.rules is not None and self.rules.max_length_bytes is not None:
            self.ready_bytes += messages.body_bytes()
        if self.expiry is not None:
            self.expiry.requeued(requeued)
        self._broker.wake(self)

    @contextmanager
    def requeuing(self) -> Iterator[None]:
        self._requeues += 1
        self._dispatch_pauses += 1
        try:
            yield
        finally:
            self._requeues -= 1
            self._resume_dispatch()
            if self._page_in is not None and not self._requeues:
                self._page_in.requeues_finished()

    def split_by_delivery_limit(
        self, messages: MessageRange, *, failed: bool
    ) -> Iterator[tuple[MessageRange, bool]]:
        limit = self._delivery_limit
        if self._redeliveries is None or limit is None:
            yield messages, False
        else:
            yield from self._redeliveries.split_by_limit(messages, limit, failed=failed)

    def _delays_retry(self, messages: MessageRange, returns: int, *, failed: bool) -> bool:
        """Whether a delayed retry puts the messages back only later."""
        delay = None if self.rules is None else self.rules.retry_delay
        if delay is None or not delay.covers(failed=failed):
            return False
        if self._delayed_retries is None:
            self._delayed_retries = DelayedRetries(self._broker.timers, self.finish_requeue)
        self._delayed_retries.add(messages, delay, returns, self._broker.now_ms)
        return True

    def return_undelivered(self, messages: MessageRange) -> None:
        self.unacked_count -= messages.high - messages.low
        self.finish_requeue(messages)

    # -- dead-lettering and deletion

    def reject(self, messages: MessageRange) -> None:
        self.unacked_count -= messages.high - messages.low
        if not self.deleted:
            self._broker.dead_letter(self, messages, "rejected")

    def expire_delivered(self, messages: MessageRange, content: Batch) -> None:
        self.unacked_count -= messages.high - messages.low
        if not self.deleted:
            self._broker.dead_letter_as(self, messages, "expired", content)

    def _end_timers(self) -> None:
        super()._end_timers()
        if self._delayed_retries is not None:
            self._delayed_retries.end()
            self._delayed_retries = None
