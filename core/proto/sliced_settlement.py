"""Settles very many deliveries of a channel in slices, one delivery a step (`Slices`).

Their tags are unknown to the channel from the first slice on. Messages that no slice has reached
count as unacknowledged. A requeued message is in no queue until all have been processed, and its
queue delivers nothing until all are back, so that the order is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ..slices import for_each

if TYPE_CHECKING:
    from ..message.batch import MessageRange
    from ..queue.queue import Queue
    from ..queue.unacked import DeliveryRange
    from ..store.port import ManySettled
    from .channel import Channel
    from .commit import Settlement


def settle(
    channel: Channel, deliveries: Iterable[DeliveryRange], settlement: Settlement
) -> Iterator[None]:
    """Acknowledges or rejects."""

    def settle_one(delivery: DeliveryRange) -> None:
        try:
            settlement(delivery)
        finally:
            channel.credit_back([delivery])

    return for_each(deliveries, settle_one)


def count(
    channel: Channel, deliveries: Iterable[DeliveryRange], many: ManySettled
) -> Iterator[None]:
    """Counts the deliveries that a commit has logged as settled."""

    def count_one(delivery: DeliveryRange) -> None:
        try:
            delivery.queue.count_settled(delivery.messages, many)
        finally:
            channel.credit_back([delivery])

    return for_each(deliveries, count_one)


def credit(channel: Channel, deliveries: Iterable[DeliveryRange]) -> Iterator[None]:
    """Returns the prefetch credit of settled deliveries."""
    return for_each(deliveries, lambda delivery: channel.credit_back([delivery]))


def requeue(
    channel: Channel, deliveries: Iterable[DeliveryRange], *, failed: bool
) -> Iterator[None]:
    """Requeues; from the first step on the queues deliver nothing until all is back.

    The oldest are checked first, because with a delivery limit they are the first dead letters;
    the newest are put back first, which needs no search for their position.
    """
    back: list[tuple[Queue, MessageRange]] = []

    def take_back(delivery: DeliveryRange) -> None:
        queue = delivery.queue
        try:
            back.extend(
                (queue, part) for part in queue.begin_requeue(delivery.messages, failed=failed)
            )
        finally:
            channel.credit_back([delivery])

    with _returning(channel):
        yield from for_each(deliveries, take_back)
        yield from for_each(iter(partial(_pop, back), None), _put_back)


def send_again(channel: Channel, deliveries: Iterable[DeliveryRange]) -> Iterator[None]:
    """Redelivers to the same consumers, and requeues what has none any more."""
    back: list[tuple[Queue, MessageRange]] = []

    def send_one(delivery: DeliveryRange) -> None:
        if not channel.redeliver(delivery):
            ranges = delivery.queue.begin_requeue(delivery.messages, failed=False)
            back.extend((delivery.queue, part) for part in ranges)

    with _returning(channel):
        yield from for_each(deliveries, send_one)
        yield from for_each(iter(partial(_pop, back), None), _put_back)
    channel.reopen_consumers()


@contextmanager
def _returning(channel: Channel) -> Iterator[None]:
    with ExitStack() as returns:
        for queue in channel.sources:
            returns.enter_context(queue.requeuing())
        yield


def _pop(back: list[tuple[Queue, MessageRange]]) -> tuple[Queue, MessageRange] | None:
    return back.pop() if back else None


def _put_back(returned: tuple[Queue, MessageRange]) -> None:
    queue, messages = returned
    queue.finish_requeue(messages)
