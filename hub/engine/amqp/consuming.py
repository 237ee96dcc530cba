"""Consumes queues of the cluster: each queue on a channel of its own, anew after each loss.

RabbitMQ's prefetch counts messages until they are acknowledged, and the hub acknowledges when the
outcome is durable. So some more are taken ahead, and wait here until one before them is released.
"""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import insort
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from aiormq.abc import AbstractChannel, DeliveredMessage

from ....core.errors import ChannelError
from ....core.message.model import Message, Table
from ...tasks import Tasks
from ..port import Delivery
from .connections import Connections
from .encoding import received
from .failures import translated
from .settlements import ChannelSettlements

AHEAD_OWN: Final = 100
AHEAD_SHARED: Final = 10
"""Messages taken ahead from a queue that others may consume too."""
AGAIN_S: Final = 0.01
"""After a message was requeued by a consumer that goes on, it is delivered again."""
RETRY_S, RETRY_MAX_S = 0.2, 5.0
_NOT_FOUND: Final = 404

log = logging.getLogger(__name__)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class AmqpDelivery:
    """Implements `Delivery`."""

    __slots__ = (
        "_consumer", "_is_held", "_received_ms", "message", "sequence", "settlements", "tag",
    )  # fmt: skip

    def __init__(
        self,
        consumer: AmqpConsumption,
        settlements: ChannelSettlements,
        tag: int,
        message: Message,
        number: int,
    ) -> None:
        self._consumer = consumer
        self._is_held = False
        self._received_ms = _now_ms()
        self.settlements = settlements
        self.tag = tag
        self.message = message
        self.sequence = number

    def __lt__(self, other: AmqpDelivery) -> bool:
        return self.tag < other.tag

    @property
    def age_s(self) -> float:
        """The seconds since it was received: RabbitMQ does not say when it arrived."""
        return (_now_ms() - self._received_ms) / 1000

    @property
    def time_to_live_s(self) -> float | None:
        expiration = self.message.properties.expiration
        return int(expiration) / 1000 if expiration else None

    def hold(self) -> None:
        self._is_held = True

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._consumer.released()

    def ack(self) -> None:
        self.settlements.ack(self.tag)
        self._consumer.settled(self)

    def nack(self, *, requeue: bool) -> None:
        if requeue:
            self._consumer.requeue(self)
        else:
            self.settlements.drop(self.tag)
            self._consumer.settled(self)

    def expire(self, original: Message) -> None:
        """Drops it: RabbitMQ dead-letters it as it is, with the reason `rejected`."""
        self.nack(requeue=False)


class AmqpConsumption:
    """Implements `Consumption`, over any number of connections."""

    def __init__(
        self,
        connections: Connections,
        vhost: str,
        queue: str,
        *,
        prefetch: int,
        ahead: int,
        on_delivery: Callable[[Delivery], None],
        on_cancel: Callable[[], Awaitable[None]],
        arguments: Table | None = None,
    ) -> None:
        self._connections = connections
        self._place = vhost, queue
        self._prefetch = prefetch
        self._ahead = ahead
        self._on_delivery = on_delivery
        self._on_cancel = on_cancel
        self._arguments = cast(Any, arguments)
        self._channel: AbstractChannel | None = None
        self._settlements: ChannelSettlements | None = None
        self._tag = ""
        self._ready: list[AmqpDelivery] = []
        """Messages that wait here, in their order."""
        self._out: dict[AmqpDelivery, None] = {}
        """Messages that the hub has, and has not settled."""
        self._held = 0
        self._is_delivering = False
        self._is_paused = False
        self._is_stopped = False
        self._is_quiet = False
        """Whether no message can arrive any more."""
        self._again: asyncio.TimerHandle | None = None
        self._tasks = Tasks()
        self.ended = asyncio.Event()
        """Set when it is cancelled and has returned what was not delivered."""
        self._is_ending = False

    @property
    def is_cancelled(self) -> bool:
        return self._is_stopped

    # -- the channel

    async def start(self) -> None:
        """Raises `ChannelError`: 404 if there is no such queue, 403 if it is in exclusive use."""
        channel = await self._open()
        self._tasks.own(self._watch(channel))

    async def _open(self) -> AbstractChannel:
        vhost, queue = self._place
        channel = await self._connections.channel(vhost)
        try:
            await self._consume(channel, queue)
        except BaseException:
            self._tasks.own(self._close_channel(channel))
            raise
        return channel

    async def _consume(self, channel: AbstractChannel, queue: str) -> None:
        settlements = ChannelSettlements(channel)

        async def take(delivered: DeliveredMessage) -> None:
            self._take(settlements, delivered)

        channel.on_consumer_cancel_callbacks.add(self._cancelled_by_broker)
        self._channel, self._settlements = channel, settlements
        with translated():
            await channel.basic_qos(prefetch_count=self._prefetch + self._ahead)
            answer = await channel.basic_consume(queue, take, arguments=self._arguments)
        self._tag = answer.consumer_tag or ""

    async def _watch(self, channel: AbstractChannel) -> None:
        """Consumes again whenever the channel is lost; runs until it is cancelled."""
        while True:
            await asyncio.wait([channel.closing])
            self._forget_channel()
            if self._is_stopped:
                self._quieten()
                return
            found = await self._reopened()
            if found is None:
                return
            channel = found

    async def _reopened(self) -> AbstractChannel | None:
        wait_s = RETRY_S
        while not self._is_stopped:
            try:
                channel = await self._open()
                if not self.is_cancelled:
                    return channel
                await self._close_channel(channel)  # cancelled meanwhile
            except ChannelError as error:
                if error.code == _NOT_FOUND:
                    self._is_stopped = True
                    self._quieten()
                    await self._on_cancel()
                    return None
                log.info("queue '%s' in vhost '%s' is not consumed: %s", *self._place[::-1], error)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_MAX_S)
        self._quieten()
        return None

    async def _cancelled_by_broker(self, _: object) -> None:
        """Closes the channel, as a queue that was deleted does not come back; `_watch` goes on."""
        if self._channel is not None:
            self._tasks.own(self._close_channel(self._channel))

    async def _close_channel(self, channel: AbstractChannel) -> None:
        with translated():
            await channel.close()

    def _forget_channel(self) -> None:
        if self._settlements is not None:
            self._settlements.is_lost = True
        self._channel = self._settlements = None
        self._ready.clear()

    # -- messages

    def _take(self, settlements: ChannelSettlements, delivered: DeliveredMessage) -> None:
        tag = delivered.delivery_tag or 0
        settlements.delivered(tag)
        found = received(delivered)
        self._ready.append(AmqpDelivery(self, settlements, tag, found.message, found.sequence))
        self._deliver()

    def _deliver(self) -> None:
        """Gives messages to the hub, as many as it may have."""
        if self._is_delivering:
            return
        self._is_delivering = True
        try:
            while self._ready and self._held < self._prefetch and self._again is None:
                if self._is_paused or self._is_stopped:
                    return
                delivery = self._ready.pop(0)
                self._out[delivery] = None
                self._held += 1
                delivery.hold()
                self._on_delivery(delivery)
        finally:
            self._is_delivering = False

    def released(self) -> None:
        """Delivers the next message, when whoever releases this one is done with it."""
        self._held -= 1
        if self._ready:
            asyncio.get_running_loop().call_soon(self._deliver)

    def settled(self, delivery: AmqpDelivery) -> None:
        self._out.pop(delivery, None)
        delivery.release()
        self._finish()

    def requeue(self, delivery: AmqpDelivery) -> None:
        """Puts the message back before those that came after it. A consumer that goes on delivers
        it again in a moment; one that was cancelled returns it to its queue."""
        self._out.pop(delivery, None)
        if delivery.settlements is self._settlements:
            delivery.message.redelivered = True
            insort(self._ready, delivery)
            if self._again is None and not self._is_stopped:
                loop = asyncio.get_running_loop()
                self._again = loop.call_later(AGAIN_S, self._deliver_again)
        delivery.release()
        self._finish()

    def _deliver_again(self) -> None:
        self._again = None
        self._deliver()

    # -- pause and end

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._deliver()

    async def cancel(self) -> None:
        """Stops deliveries. Messages that wait here return to their queue together with those that
        the hub requeues, when it has settled all: so their order stays."""
        if self._is_stopped:
            return
        self._is_stopped = True
        if self._channel is not None:
            try:
                with translated():
                    await self._channel.basic_cancel(self._tag)
            except ChannelError as error:
                log.info("queue '%s' in vhost '%s': %s", *self._place[::-1], error)
            self._quieten()

    async def end(self) -> None:
        await self.cancel()

    async def close(self) -> None:
        """Stops deliveries; RabbitMQ returns to the queue what is not settled."""
        self._is_stopped = True
        if self._channel is not None:
            await self._close_channel(self._channel)
        self._out.clear()
        self._quieten()

    def _quieten(self) -> None:
        self._is_quiet = True
        self._finish()

    def _finish(self) -> None:
        if self._is_quiet and not self._out and not self._is_ending:
            self._is_ending = True
            self._tasks.own(self._return_all())

    async def _return_all(self) -> None:
        settlements, channel = self._settlements, self._channel
        try:
            if settlements is None or channel is None:
                return
            for delivery in self._ready:
                settlements.return_(delivery.tag)
            self._ready.clear()
            await settlements.sent()
            await self._close_channel(channel)
        finally:
            self.ended.set()
