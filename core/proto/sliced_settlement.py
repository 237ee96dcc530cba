"""Settles very many deliveries of a channel in slices, one delivery a step (`Slices`).

Their tags are unknown to the channel from the first slice on. Messages that no slice has reached
count as unacknowledged. A requeued message is in no queue until all have been processed, and its
queue delivers nothing until all are returned, so that the order is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ..message.queue_entry import MessageRange
from ..slices import for_each

if TYPE_CHECKING:
    from ..queue.queue import Queue
    from ..queue.unacked import DeliveryRange
    from ..store.port import ManySettled
    from .context import ChannelContext
    from .settlement import Settlement


def settle(
    channel: ChannelContext, deliveries: Iterable[DeliveryRange], settlement: Settlement
) -> Iterator[None]:
    """Acknowledges or rejects deliveries."""

    def settle_one(delivery: DeliveryRange) -> None:
        try:
            settlement(delivery)
        finally:
            channel.credit_back([delivery])

    return for_each(deliveries, settle_one)


def count(
    channel: ChannelContext, deliveries: Iterable[DeliveryRange], many: ManySettled
) -> Iterator[None]:
    """Counts the deliveries that a commit has logged as settled."""

    def count_one(delivery: DeliveryRange) -> None:
        try:
            delivery.queue.count_settled(delivery.messages, many)
        finally:
            channel.credit_back([delivery])

    return for_each(deliveries, count_one)


def credit(channel: ChannelContext, deliveries: Iterable[DeliveryRange]) -> Iterator[None]:
    """Returns the prefetch credit of settled deliveries."""
    return for_each(deliveries, lambda delivery: channel.credit_back([delivery]))


def requeue(
    channel: ChannelContext, deliveries: Iterable[DeliveryRange], *, failed: bool
) -> Iterator[None]:
    """Requeues deliveries; from the first step on the queues deliver nothing until all is returned.

    The oldest are checked first, because with a delivery limit they are the first dead letters;
    the newest are put back first, which needs no search for their position.
    """
    returned: list[tuple[Queue, MessageRange]] = []

    def take_back(delivery: DeliveryRange) -> None:
        queue = delivery.queue
        try:
            returned.extend(
                (queue, part) for part in queue.begin_requeue(delivery.messages, failed=failed)
            )
        finally:
            channel.credit_back([delivery])

    with _returning(channel):
        yield from for_each(deliveries, take_back)
        yield from for_each(iter(partial(_pop, returned), None), _put_back)


def send_again(channel: ChannelContext, deliveries: Iterable[DeliveryRange]) -> Iterator[None]:
    """Redelivers to the same consumers, and requeues what has none any more."""
    returned: list[tuple[Queue, MessageRange]] = []

    def send_one(delivery: DeliveryRange) -> None:
        if not _redeliver(channel, delivery):
            ranges = delivery.queue.begin_requeue(delivery.messages, failed=False)
            returned.extend((delivery.queue, part) for part in ranges)

    with _returning(channel):
        yield from for_each(deliveries, send_one)
        yield from for_each(iter(partial(_pop, returned), None), _put_back)
    channel.reopen_consumers()


def requeue_all(channel: ChannelContext) -> None:
    """Requeues all unacked deliveries of a channel that has closed, as failed ones."""
    everything = channel.deliveries.unacked.detach_all()
    channel.broker.slices.start(requeue(channel, everything, failed=True))


def _redeliver(channel: ChannelContext, delivery: DeliveryRange) -> bool:
    """Delivers again to the same consumer; False if it is gone or can't take it now."""
    channel.deliveries.uncount((delivery,))
    consumer, messages = delivery.consumer, delivery.messages
    if consumer is None or consumer.tag not in channel.consumers:
        return False
    if not messages.entry.batch.resident or not channel.writable:
        return False
    again = MessageRange(messages.entry, messages.low, messages.high, True)
    channel.deliver(consumer, again, delivery.queue.with_headers(again))
    return True


@contextmanager
def _returning(channel: ChannelContext) -> Iterator[None]:
    with ExitStack() as returns:
        for queue in channel.deliveries.sources:
            returns.enter_context(queue.requeuing())
        yield


def _pop(returned: list[tuple[Queue, MessageRange]]) -> tuple[Queue, MessageRange] | None:
    return returned.pop() if returned else None


def _put_back(returned: tuple[Queue, MessageRange]) -> None:
    queue, messages = returned
    queue.finish_requeue(messages)
