"""A reader of a queue: messages leave the queue when they are written, or when they are acked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...core.errors import ProtocolError
from ..engine.port import BulkConsumer, Consumption, Delivery, Engine, Numbered
from .encoding import MessageEncoder
from .reasons import Reason

if TYPE_CHECKING:
    from ..requests import Resource
    from ..tasks import Tasks
    from .reader import LiveReader

PREFETCH: Final = 100
PREFETCH_MAX: Final = 1_000
"""Each has its object, and its message may come back."""


class AutoAcked:
    """Reads a queue without acks, and only while the reader keeps up; all other messages stay in
    the queue."""

    def __init__(
        self, engine: Engine, queue: Resource, encoder: MessageEncoder, tasks: Tasks
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._encoder = encoder
        self._tasks = tasks
        self._reader: LiveReader | None = None
        self._consumer: BulkConsumer | None = None

    def add(self, reader: LiveReader) -> None:
        self._reader = reader
        self._tasks.own(self._start(reader))

    async def _start(self, reader: LiveReader) -> None:
        try:
            self._consumer = await self._engine.consume_unacked(
                self._queue.vhost,
                self._queue.name,
                on_messages=self._take,
                on_cancel=lambda error: reader.end(Reason.cancelled(self._queue, error)),
            )
        except ProtocolError as error:
            reader.end(Reason.of(error))
        if self._reader is None and self._consumer is not None:
            self._consumer.end()

    def _take(self, messages: Sequence[Numbered]) -> None:
        if self._reader is not None:
            self._reader.send(self._encoder.encode(messages, ()))

    def remove(self, reader: LiveReader) -> None:
        self._reader = None
        if self._consumer is not None:
            self._consumer.end()

    def full(self, reader: LiveReader) -> None:
        if self._consumer is not None:
            self._consumer.pause()

    def drained(self, reader: LiveReader) -> None:
        if self._consumer is not None:
            self._consumer.resume()

    def position(self, reader: LiveReader) -> str:
        return ""


class ManuallyAcked:
    """Reads a queue with acks: up to `prefetch` messages are not settled; the rest waits in the
    queue."""

    def __init__(
        self,
        engine: Engine,
        queue: Resource,
        encoder: MessageEncoder,
        tasks: Tasks,
        prefetch: int,
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._encoder = encoder
        self._tasks = tasks
        self._prefetch = prefetch
        self._reader: LiveReader | None = None
        self._consumption: Consumption | None = None
        self._arrived: list[Delivery] = []
        """Deliveries of this round of the loop, which are written together."""
        self._unsettled: dict[str, Delivery] = {}

    def add(self, reader: LiveReader) -> None:
        self._reader = reader
        self._tasks.own(self._start(reader))

    async def _start(self, reader: LiveReader) -> None:
        async def gone() -> None:
            reader.end(Reason.deleted(self._queue))

        try:
            self._consumption = await self._engine.consume(
                self._queue.vhost,
                self._queue.name,
                prefetch=self._prefetch,
                on_delivery=self._deliver,
                on_cancel=gone,
            )
        except ProtocolError as error:
            reader.end(Reason.of(error))
        if self._reader is None and self._consumption is not None:
            await self._consumption.close()

    def _deliver(self, delivery: Delivery) -> None:
        self._arrived.append(delivery)
        if len(self._arrived) == 1:
            asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        arrived, self._arrived = self._arrived, []
        if self._reader is None:
            return
        for delivery in arrived:
            self._unsettled[self._encoder.message_id(delivery.sequence)] = delivery
        messages = [(delivery.sequence, delivery.message) for delivery in arrived]
        self._reader.send(self._encoder.encode(messages, ()))

    def stop(self) -> None:
        """Delivers nothing more; what was delivered can be settled until `remove`."""
        if self._consumption is not None:
            self._tasks.own(self._consumption.end())

    def settle(self, message_id: str, *, is_ack: bool, requeue: bool = True) -> bool:
        """Settles a message; False if none of that id waits for it."""
        delivery = self._unsettled.pop(message_id, None)
        if delivery is None:
            return False
        if is_ack:
            delivery.ack()
        else:
            delivery.nack(requeue=requeue)
        return True

    def remove(self, reader: LiveReader) -> None:
        self._reader = None
        self._unsettled.clear()
        if self._consumption is not None:
            self._tasks.own(self._consumption.close())

    def full(self, reader: LiveReader) -> None:
        """Does nothing: the prefetch bounds what is unsent."""

    def drained(self, reader: LiveReader) -> None:
        """Does nothing: the prefetch bounds what is unsent."""

    def position(self, reader: LiveReader) -> str:
        return ""
