"""Applies a tx.commit: its publishes, settlements and dead letters, as one group in the store.

Dead letters are made first, in slices beside other work, because their messages may have to be
read from disk; then everything takes effect in one step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ..queue.unacked import DeliveryRange
from ..republish.group import DeadLettered, RepublishGroup
from ..slices import drain
from . import sliced_settlement
from .settlement import Settlement, acknowledge, counted, makes_dead_letters, reject, requeue_failed

if TYPE_CHECKING:
    from ..publish.buffer import PublishBuffer
    from ..queue.queue import Queue
    from .context import ChannelContext


class Commit:
    """One tx.commit: `prepare` it, and when it `is_ready`, `apply` it.

    `ready` is called when its dead letters are made. A commit that `is_long` is marked as settled
    in slices, logged in the one step that applies it, and counted in slices afterwards.
    """

    __slots__ = (
        "_channel", "_done", "_group", "_is_durable", "_is_prepared", "_many", "_marked", "_others",
        "_publishes", "_queues", "_ready", "_settlements", "_to_requeue", "buffered_bytes",
        "is_long",
    )  # fmt: skip

    def __init__(
        self,
        channel: ChannelContext,
        publishes: PublishBuffer,
        settlements: deque[tuple[Settlement, Iterable[DeliveryRange]]],
        buffered_bytes: int,
        ready: Callable[[], None],
        *,
        is_long: bool,
    ) -> None:
        self._channel = channel
        self._publishes = publishes
        self._settlements = settlements
        self.buffered_bytes = buffered_bytes
        self.is_long = is_long
        self._ready = ready
        self._group: RepublishGroup | None = None
        self._is_prepared = False
        self._is_durable = False
        self._many = channel.broker.store.many_settled()
        self._done: deque[DeliveryRange] = deque()
        self._marked: deque[DeliveryRange] = deque()
        self._to_requeue: deque[DeliveryRange] = deque()
        self._queues: dict[Queue, None] = {}
        """The queues of the marked and of the dead-lettered messages."""
        self._others: list[tuple[Settlement, DeliveryRange]] = []

    def prepare(self) -> Iterator[None]:
        """Groups the settlements by kind and starts making the dead letters."""
        for settlement, deliveries in drain(self._settlements):
            for delivery in counted(self._channel, settlement, deliveries):
                self._sort(settlement, delivery)
                yield
        self._is_prepared = True
        if self._group is not None:
            self._group.complete()

    def _sort(self, settlement: Settlement, delivery: DeliveryRange) -> None:
        queue = delivery.queue
        settles = settlement in (acknowledge, reject)
        self._is_durable |= queue.durable
        if makes_dead_letters(settlement, queue):
            self._queues[queue] = None
            self._done.append(delivery)
            for other in self._make_dead_letters(settlement, delivery):
                self._others.append((settlement, other))
        elif not self.is_long or (queue.counts_redeliveries and not settles):
            self._done.append(delivery)
            self._others.append((settlement, delivery))
        elif settles:
            queue.note_settled(delivery.messages, self._many)
            self._marked.append(delivery)
            self._queues[queue] = None
        else:
            self._to_requeue.append(delivery)

    def _make_dead_letters(
        self, settlement: Settlement, delivery: DeliveryRange
    ) -> Iterator[DeliveryRange]:
        """Queues the messages of a settlement for dead-lettering; yields those that stay."""
        queue, messages = delivery.queue, delivery.messages
        if settlement is reject:
            self._dead_letters.add(DeadLettered(queue, messages, "rejected"))
            return
        for part, dies in queue.split_by_delivery_limit(
            messages, failed=settlement is requeue_failed
        ):
            if dies:
                self._dead_letters.add(DeadLettered(queue, part, "delivery_limit"))
            else:
                yield delivery._replace(messages=part)

    @property
    def _dead_letters(self) -> RepublishGroup:
        """The commit's dead letters as one group, made at the first use."""
        if self._group is None:
            many = self._many if self.is_long else None
            self._group = self._channel.broker.gather(self._ready, many)
        return self._group

    @property
    def is_ready(self) -> bool:
        return self._is_prepared and (self._group is None or self._group.is_ready)

    def apply(self) -> tuple[int, bool]:
        """Applies everything; returns the commit number to wait for and whether every queue
        accepted its messages."""
        store = self._channel.broker.store
        with store.together():
            complete, commit = self._publishes.publish_all()
            is_durable = commit != 0
            if self._group is not None:
                is_durable |= self._group.publish_all() != 0
            for settlement, delivery in self._others:
                settlement(delivery)
            if self.is_long:
                for queue in self._queues:
                    if queue.deleted:
                        self._many.forget(queue.id)
                self._many.log()
            elif self._group is not None:
                for _ in self._group.settle():
                    pass
        # Only after all is settled: returned credit starts new deliveries.
        if self.is_long:
            slices = self._channel.broker.slices
            slices.start(self._count())
            returned = drain(self._to_requeue)
            slices.start(sliced_settlement.requeue(self._channel, returned, failed=False))
        else:
            self._channel.credit_back(self._done)
        return store.barrier() if is_durable or self._is_durable else 0, complete

    def _count(self) -> Iterator[None]:
        """Updates the counts of the messages logged as settled; no checkpoint until it is done."""
        try:
            if self._group is not None:
                yield from self._group.settle()
            yield from sliced_settlement.count(self._channel, drain(self._marked), self._many)
            yield from sliced_settlement.credit(self._channel, drain(self._done))
        finally:
            self._many.end()
