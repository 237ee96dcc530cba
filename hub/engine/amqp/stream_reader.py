"""Reads a stream of RabbitMQ from an offset on, over a channel of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, cast

from aiormq.abc import AbstractChannel, DeliveredMessage

from ....core.errors import ChannelError, not_found
from ..errors import EngineUnavailable
from .connections import Connections
from .encoding import OFFSET, StreamMessage, received_of_stream
from .failures import translated

Begin = int | str | datetime
"""An offset, a time, or `first`, `last` or `next`."""
ANSWER_S: Final = 10.0
"""How long a message that is there may take."""
_PRECONDITION_FAILED: Final = 406


class AmqpStreamReader:
    """Gets messages in order; `prefetch` of them may be on their way here."""

    def __init__(self, channel: AbstractChannel, place: tuple[str, str], prefetch: int) -> None:
        self._channel = channel
        self._place = place
        self._prefetch = prefetch
        self._arrived: deque[DeliveredMessage] = deque()
        self._has_news = asyncio.Event()
        self._unacked = 0
        self._expected = 0
        self._is_gone = False

    async def begin(self, at: Begin) -> None:
        """Raises `ChannelError` 404 if there is no such queue."""
        self._channel.on_consumer_cancel_callbacks.add(self._cancelled)
        self._channel.closing.add_done_callback(lambda _: self._has_news.set())
        try:
            with translated():
                await self._channel.basic_qos(prefetch_count=self._prefetch)
            await self._consume(at, self._take)
        except ChannelError as error:
            if error.code != _PRECONDITION_FAILED:
                raise
            raise EngineUnavailable(
                f"{self} can't be read at the node that the hub is connected to: {error}"
            ) from error

    async def _consume(
        self, at: Begin, take: Callable[[DeliveredMessage], Coroutine[Any, Any, None]]
    ) -> None:
        arguments = cast(Any, {OFFSET: at})
        with translated():
            await self._channel.basic_consume(self._place[1], take, arguments=arguments)

    async def _take(self, delivered: DeliveredMessage) -> None:
        self._arrived.append(delivered)
        self._has_news.set()

    async def _cancelled(self, _: object) -> None:
        self._is_gone = True
        self._has_news.set()

    async def some(self, limit: int) -> list[StreamMessage]:
        """Waits for messages, and returns so many at most. Raises `ChannelError` 404 if the stream
        was deleted."""
        while not self._arrived:
            if self._is_gone:
                vhost, name = self._place
                raise not_found(f"no queue '{name}' in vhost '{vhost}'")
            if self._channel.is_closed:
                raise EngineUnavailable("the connection to RabbitMQ was lost")
            self._has_news.clear()
            await self._has_news.wait()
        return await self._take_out(limit)

    async def all_there(self) -> list[StreamMessage]:
        """Returns the first messages of a stream that is not empty, none if it ends before `at`.
        Raises `EngineUnavailable` if RabbitMQ does not answer."""
        last = asyncio.Event()

        async def take(_: DeliveredMessage) -> None:
            last.set()

        # Both consumers are told at once what there is for them.
        await self._consume("last", take)
        try:
            async with asyncio.timeout(ANSWER_S):
                await last.wait()
        except TimeoutError:
            raise EngineUnavailable(f"{self} does not answer") from None
        return await self.all_sent()

    async def some_within(self, limit: int, seconds: float) -> list[StreamMessage]:
        """Returns what `some` does, nothing if there is none for so long."""
        try:
            async with asyncio.timeout(seconds):
                return await self.some(limit)
        except TimeoutError:
            return []

    async def all_sent(self) -> list[StreamMessage]:
        """Returns the messages that RabbitMQ has sent up to now."""
        with translated():
            await self._channel.queue_declare(self._place[1], passive=True)
        return await self._take_out(len(self._arrived))

    async def _take_out(self, limit: int) -> list[StreamMessage]:
        found: list[StreamMessage] = []
        while self._arrived and len(found) < limit:
            delivered = self._arrived.popleft()
            one = received_of_stream(delivered, self._expected)
            self._expected = one.offset + 1
            found.append(one)
            self._unacked += 1
            if self._unacked * 2 >= self._prefetch:
                await self._acknowledge(delivered.delivery_tag or 0)
        return found

    async def _acknowledge(self, tag: int) -> None:
        """Lets RabbitMQ send more, half of the prefetch at a time."""
        self._unacked = 0
        with translated():
            await self._channel.basic_ack(tag, multiple=True, wait=False)

    def __str__(self) -> str:
        return f"stream '{self._place[1]}' in vhost '{self._place[0]}'"


@asynccontextmanager
async def reading(
    connections: Connections, vhost: str, name: str, at: Begin, prefetch: int
) -> AsyncIterator[AmqpStreamReader]:
    """Reads within the block. Raises `ChannelError` 404 if there is no such queue, and
    `EngineUnavailable`."""
    channel = await connections.channel(vhost)
    try:
        reader = AmqpStreamReader(channel, (vhost, name), prefetch)
        await reader.begin(at)
        yield reader
    finally:
        if not channel.is_closed:
            with translated():
                await channel.close()
