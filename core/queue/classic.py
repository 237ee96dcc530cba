"""Classic and quorum queues: messages are delivered to consumers in turn until acknowledged.

A quorum queue is this class with rules of its own (`arguments.py`). Optional parts are in modules
of their own: order (`backlog`, `priority`), consumers (`consumer`, `single_active`), counts of
returns and delayed retries (`redelivery`); dead letters are the broker's (`core/republish`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from ..message.batch import Batch
from ..message.queue_entry import MessageRange
from .backlog_queue import BacklogQueue
from .consumer import Consumer, ConsumerRing
from .delivery_marks import DeliveryMarks
from .queue import DISPATCH_BYTES
from .redelivery import DelayedRetries, RedeliveryCounter
from .rules import Rules
from .single_active import SingleActiveRing

if TYPE_CHECKING:
    from ..store.port import ManySettled


class ClassicQueue(BacklogQueue):
    """A queue whose messages are removed when they are acknowledged."""

    __slots__ = (
        "_delayed_retries", "_delivery_marks", "_dispatch_pauses", "_redeliveries",
    )  # fmt: skip

    def _initialise(self) -> None:
        super()._initialise()
        self._dispatch_pauses = 0
        """The number of reasons not to dispatch now."""
        self._delivery_marks: DeliveryMarks | None = None
        if self.durable:
            self._delivery_marks = DeliveryMarks(has_priorities=self.has_priorities)
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
        marks = self._delivery_marks
        return {} if marks is None else marks.highest(self.id)

    # -- dispatch to consumers

    def dispatch(self, budget: int) -> bool:
        if self.expiry is not None and self.expiry.zero_ttl_requeued:
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
        if self._delivery_marks is not None:
            self._delivery_marks.note(self, messages, self._broker.store)
        return messages

    def with_headers(self, messages: MessageRange) -> MessageRange:
        return messages if self._redeliveries is None else self._redeliveries.with_headers(messages)

    @property
    def has_ready_consumer(self) -> bool:
        if self.ring is None or self.ready_count or self.is_paused:
            return False
        return self.ring.can_take_one()

    def add_consumer(self, consumer: Consumer) -> None:
        if self.ring is None:
            single = self.rules is not None and self.rules.single_active
            self.ring = SingleActiveRing() if single else ConsumerRing()
        marks = self._delivery_marks
        if marks is not None and self.ready_count and not self.has_consumers:
            # Dispatch waits until it is on disk that the ready messages may be delivered.
            self._dispatch_pauses += 1
            commit = marks.log_all(self, self._broker.store)
            self._broker.commits.when_decided(commit, self._resume_dispatch)
        self.ring.add(consumer)
        if consumer.exclusive:
            self.exclusive_consumer = consumer
        self._broker.wake(self)

    def suspend_dispatch(self) -> None:
        super().suspend_dispatch()
        self._dispatch_pauses += 1

    def _resume_dispatch(self) -> None:
        self._dispatch_pauses -= 1
        super()._resume_dispatch()

    # -- basic.get

    def when_head_ready(self, action: Callable[[], None]) -> None:
        if self._requeues:
            self.page_in_requests.when_requeued(action)
            return
        commit = self._log_get()
        if commit:
            self._broker.commits.when_decided(commit, lambda: self._when_head_read(action))
        else:
            self._when_head_read(action)

    def _log_get(self) -> int:
        """Logs that the oldest message may be delivered, so that it is flagged redelivered after a
        crash. Returns the commit to wait for, 0 if it is logged already."""
        marks = self._delivery_marks
        head = None if self._backlog is None else self._backlog.head()
        if marks is None or self.has_consumers or not isinstance(head, MessageRange):
            return 0
        return marks.log_next(self, head.sequence, self._broker.store)

    def _when_head_read(self, action: Callable[[], None]) -> None:
        head = None if self._backlog is None else self._backlog.head()
        if head is None or (isinstance(head, MessageRange) and head.entry.batch.resident):
            action()
            return
        self.page_in_requests.when_head_read(head, action)

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

    def requeuing(self) -> AbstractContextManager[None]:
        return self._requeuing()

    @contextmanager
    def _requeuing(self) -> Iterator[None]:
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
