"""Scans a queue of the cluster: messages are taken in chunks, shown, and returned.

RabbitMQ has no other way to look at a queue. Each scan counts in the header `x-delivery-count`,
which the hub's queues do not limit (`topology.py`).
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
from .encoding import Received, received
from .failures import translated

CHUNK_MESSAGES: Final = 100
TAKE_S: Final = 5.0
RETURN_POLLS: Final = 100
RETURN_POLL_S: Final = 0.01


class TakenMessage:
    """Implements `UnackedMessage`; it can be settled until `look` returns."""

    __slots__ = ("_received", "is_acked", "is_dropped", "tag")

    def __init__(self, found: Received, tag: int) -> None:
        self._received = found
        self.tag = tag
        self.is_acked = False
        self.is_dropped = False

    @property
    def message(self) -> Message:
        return self._received.message

    @property
    def sequence(self) -> int:
        return self._received.sequence

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
        left = min(limit, there)
        while left > 0:
            chunk = await _take(channel, queue, min(left, CHUNK_MESSAGES))
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
                # All that are left at once: they keep their order.
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


async def _take(channel: AbstractChannel, queue: str, count: int) -> list[TakenMessage]:
    """Takes the next messages, with a consumer for so many: a get of each would be written to disk
    by itself."""
    taken: list[TakenMessage] = []
    is_full = asyncio.Event()

    async def take(delivered: DeliveredMessage) -> None:
        taken.append(TakenMessage(received(delivered), delivered.delivery_tag or 0))
        if len(taken) >= count:
            is_full.set()

    with translated():
        await channel.basic_qos(prefetch_count=count)
        answer = await channel.basic_consume(queue, take)
        with suppress(TimeoutError):  # others have taken some of them
            async with asyncio.timeout(TAKE_S):
                await is_full.wait()
        await channel.basic_cancel(answer.consumer_tag or "")
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
