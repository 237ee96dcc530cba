"""The ways to settle deliveries: functions of one range of deliveries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ..queue.unacked import DeliveryRange

if TYPE_CHECKING:
    from ..message.batch import Batch
    from ..queue.queue import Queue
    from .context import ChannelContext

Settlement = Callable[[DeliveryRange], None]


def acknowledge(delivery: DeliveryRange) -> None:
    delivery.queue.settle(delivery.messages)


def requeue_returned(delivery: DeliveryRange) -> None:
    """Requeues returned deliveries, which do not count towards a delivery limit."""
    delivery.queue.requeue(delivery.messages, failed=False)


def requeue_failed(delivery: DeliveryRange) -> None:
    """Requeues failed deliveries, which count towards a delivery limit."""
    delivery.queue.requeue(delivery.messages, failed=True)


def reject(delivery: DeliveryRange) -> None:
    """Dead-letters or drops deliveries."""
    delivery.queue.reject(delivery.messages)


def counted(
    channel: ChannelContext, settlement: Settlement, deliveries: Iterable[DeliveryRange]
) -> Iterator[DeliveryRange]:
    """Yields the deliveries that a client settles, and counts them for statistics."""
    statistics = channel.broker.statistics
    count = statistics.acknowledged if settlement is acknowledge else statistics.rejected
    for delivery in deliveries:
        messages = delivery.messages
        count(delivery.queue, channel, messages.high - messages.low)
        yield delivery


def makes_dead_letters(settlement: Settlement, queue: Queue) -> bool:
    """Whether a settlement may produce dead letters."""
    rules = queue.rules
    if settlement is acknowledge or rules is None or rules.dead_letter_exchange is None:
        return False
    return settlement is reject or rules.delivery_limit is not None


def dead_letter_bytes(settlement: Settlement, queue: Queue, batch: Batch, count: int) -> int:
    """Estimates the bytes of the dead letters of `count` messages of a batch."""
    return batch.size_bytes * count // batch.count if makes_dead_letters(settlement, queue) else 0
