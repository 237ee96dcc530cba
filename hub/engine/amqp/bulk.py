"""Takes messages of a queue many at a time, for readers of live streams."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from ....core.message.model import Numbered
from ...tasks import Tasks
from ..port import Delivery
from .connections import Connections
from .consuming import AmqpConsumption

PREFETCH: Final = 1_000

log = logging.getLogger(__name__)


class AmqpBulkConsumer:
    """Implements `BulkConsumer`: what was passed on is acknowledged at once; all else returns to
    the queue at the end."""

    def __init__(
        self,
        connections: Connections,
        vhost: str,
        queue: str,
        on_messages: Callable[[Sequence[Numbered]], None],
        on_cancel: Callable[[Exception | None], None],
    ) -> None:
        self._on_messages = on_messages
        self._on_cancel = on_cancel
        self._taken: list[Delivery] = []
        """Deliveries of this round of the loop, which are passed on together."""
        self._is_ended = False
        self._tasks = Tasks()
        self._consumer = AmqpConsumption(
            connections, vhost, queue, prefetch=PREFETCH, ahead=0, is_shared=False,
            on_delivery=self._take, on_cancel=self._cancelled,
        )  # fmt: skip

    async def start(self) -> None:
        """Messages come when it has returned, unless `end` is called at once. Raises `ChannelError`
        as `AmqpConsumption.start`."""
        self._consumer.pause()
        await self._consumer.start()
        asyncio.get_running_loop().call_soon(self._consumer.resume)

    def pause(self) -> None:
        self._consumer.pause()

    def resume(self) -> None:
        self._consumer.resume()

    def end(self) -> None:
        self._is_ended = True
        self._taken.clear()
        self._tasks.own(self._consumer.close())

    def _take(self, delivery: Delivery) -> None:
        if self._is_ended:
            return
        if not self._taken:
            asyncio.get_running_loop().call_soon(self._pass_on)
        self._taken.append(delivery)

    def _pass_on(self) -> None:
        taken, self._taken = self._taken, []
        try:
            self._on_messages([(one.sequence, one.message) for one in taken])
        except Exception as error:
            self._on_cancel(error)
            self.end()
        for delivery in taken:
            delivery.ack()

    async def _cancelled(self) -> None:
        self._on_cancel(None)
