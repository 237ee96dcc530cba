"""Consumes a queue in batches, each acknowledged when its outcome is stored."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from ...core.errors import WarrenError
from ...core.message.model import Table
from ..engine.port import Consumption, Delivery, Engine

PREFETCH = 32
"""How many messages may be in memory of one queue: each may have 16 MiB."""
BATCH_BYTES = 4 * 1024 * 1024
"""A batch has bodies of this size at most, or one message; it goes to a worker process whole."""
AGAIN_S, MAX_AGAIN_S = 5.0, 300.0
"""The first and the longest wait until a batch is tried again that the database did not take, or a
queue that is not there."""

log = logging.getLogger(__name__)


class BatchConsumer:
    """Calls `take` with one batch at a time, repeatedly until it returns; then acknowledges.

    `arguments` returns those of the consumer, each time that it consumes anew.
    """

    def __init__(
        self,
        engine: Engine,
        vhost: str,
        queue: str,
        take: Callable[[Sequence[Delivery]], Awaitable[None]],
        arguments: Callable[[], Awaitable[Table]],
    ) -> None:
        self._engine = engine
        self._vhost = vhost
        self._queue = queue
        self._take = take
        self._arguments = arguments
        self._waiting: deque[Delivery] = deque()
        self._has_news = asyncio.Event()
        self._is_gone = False

    async def run(self) -> None:
        """Consumes until it is cancelled; what is not acknowledged then returns to the queue."""
        while True:
            try:
                await self._consume()
            except WarrenError as error:
                log.info("consuming queue '%s' failed: %s", self._queue, error)
            await asyncio.sleep(AGAIN_S)

    async def _consume(self) -> None:
        self._is_gone = False
        consumption = await self._engine.consume(
            self._vhost,
            self._queue,
            prefetch=PREFETCH,
            on_delivery=self._offer,
            on_cancel=self._on_cancel,
            arguments=await self._arguments(),
        )
        batch: list[Delivery] = []
        try:
            while not self._is_gone:
                batch = self._next_batch()
                if batch:
                    await self._complete(batch)
                else:
                    self._has_news.clear()
                    await self._has_news.wait()
        finally:
            await self._leave(consumption, batch)

    def _offer(self, delivery: Delivery) -> None:
        self._waiting.append(delivery)
        self._has_news.set()

    async def _on_cancel(self) -> None:
        self._is_gone = True
        self._has_news.set()

    def _next_batch(self) -> list[Delivery]:
        batch: list[Delivery] = []
        size = 0
        while self._waiting:
            size += len(self._waiting[0].message.body)
            if batch and size > BATCH_BYTES:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _complete(self, batch: list[Delivery]) -> None:
        wait_s = AGAIN_S
        while True:
            try:
                await self._take(batch)
            except WarrenError as error:
                log.error(
                    "processing messages of queue '%s' failed, retrying: %s", self._queue, error
                )
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, MAX_AGAIN_S)
            else:
                self._engine.ack(batch)
                batch.clear()
                return

    async def _leave(self, consumption: Consumption, batch: list[Delivery]) -> None:
        await consumption.cancel()
        for delivery in (*batch, *self._waiting):
            delivery.nack(requeue=True)
        self._waiting.clear()
