"""Scans a queue of the cluster: messages are taken in chunks, shown, and returned.

RabbitMQ has no other way to look at a queue. Each scan counts in the header `x-delivery-count`,
which the hub's queues do not limit (`topology.py`).

All that are left return at once, in their order: RabbitMQ returns them by consumer, in the order of
the consumers' tags, and those of one consumer in order if they are not more than a chunk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from aiormq.abc import AbstractChannel, DeliveredMessage

from ....core.message.model import Message
from ..port import UnackedMessage
from .connections import Connections
from .encoding import received
from .failures import translated
from .returned import new_number

CHUNK_MESSAGES: Final = 32
"""The messages of one consumer; Erlang's maps have an order up to this size."""
TAKE_S: Final = 5.0
RETURN_POLLS: Final = 100
RETURN_POLL_S: Final = 0.01


class TakenMessage:
    """Implements `UnackedMessage`; it can be settled until `look` returns."""

    __slots__ = ("is_acked", "is_dropped", "message", "sequence", "tag")

    def __init__(self, message: Message, number: int, tag: int) -> None:
        self.message = message
        self.sequence = number
        self.tag = tag
        self.is_acked = False
        self.is_dropped = False

    def ack(self) -> None:
        self.is_acked = True

    def nack(self, *, requeue: bool) -> None:
        self.is_dropped = not requeue


async def scan(
    connections: Connections,
    vhost: str,
    queue: str,
    look: Callable[[Sequence[UnackedMessage]], Awaitable[bool]],
    limit: int,
) -> bool:
    """Runs a scan; returns whether all messages were shown that were ready at the beginning."""
    channel = await connections.channel(vhost)
    left_over = 0
    try:
        with translated():
            there = (await channel.queue_declare(queue, passive=True)).message_count or 0
        left = left_at_first = min(limit, there)
        while left > 0:
            tag = f"scan-{left_at_first - left:010}"
            chunk = await _take(channel, queue, tag, min(left, CHUNK_MESSAGES))
            if not chunk:
                return True
            left -= len(chunk)
            left_over += len(chunk)
            is_continued = await look(chunk)
            left_over -= await _settle(channel, chunk)
            if not is_continued:
                return False
        return there <= limit
    finally:
        with translated():
            if left_over and not channel.is_closed:
                await channel.basic_nack(0, multiple=True, requeue=True)
                await _await_return(channel, queue, left_over)
            await channel.close()


async def _await_return(channel: AbstractChannel, queue: str, count: int) -> None:
    """Waits a moment until the messages are ready again, since RabbitMQ does not confirm that: the
    next scan is to find them."""
    for _ in range(RETURN_POLLS):
        answer = await channel.queue_declare(queue, passive=True)
        if (answer.message_count or 0) >= count:
            return
        await asyncio.sleep(RETURN_POLL_S)


async def _take(
    channel: AbstractChannel, queue: str, consumer_tag: str, count: int
) -> list[TakenMessage]:
    """Takes the next messages, with a consumer for so many: a get of each would be written to disk
    by itself."""
    taken: list[TakenMessage] = []
    is_full = asyncio.Event()

    async def take(delivered: DeliveredMessage) -> None:
        message, number = received(delivered)
        tag = delivered.delivery_tag or 0
        taken.append(TakenMessage(message, new_number() if number is None else number, tag))
        if len(taken) >= count:
            is_full.set()

    with translated():
        await channel.basic_qos(prefetch_count=count)
        await channel.basic_consume(queue, take, consumer_tag=consumer_tag)
        with suppress(TimeoutError):  # others have taken some of them
            async with asyncio.timeout(TAKE_S):
                await is_full.wait()
        await channel.basic_cancel(consumer_tag)
    return taken


async def _settle(channel: AbstractChannel, chunk: Sequence[TakenMessage]) -> int:
    """Settles what `look` has settled; returns how many."""
    with translated():
        for one in chunk:
            if one.is_acked:
                await channel.basic_ack(one.tag, wait=False)
            elif one.is_dropped:
                await channel.basic_nack(one.tag, requeue=False, wait=False)
    return sum(one.is_acked or one.is_dropped for one in chunk)
