"""Consumes queues of the cluster: each queue on a channel of its own, anew after each loss.

RabbitMQ's prefetch counts messages until they are acknowledged, and the hub acknowledges when the
outcome is durable. So some more are taken ahead, and wait here until one before them is released.

A consumer ends with its channel: RabbitMQ then returns all that is not acknowledged, in its order.
Quorum queues have no other way that keeps it: one whose consumer is cancelled takes back what was
on its way there before what the consumer returns, and one without a delivery limit puts behind all
others what is returned with `basic.nack`. A queue notices a moment later that the channel is
closed; the hub's queues, with their single active consumer, serve no other consumer until then.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import insort
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, cast

from aiormq.abc import AbstractChannel, DeliveredMessage

from ....core.errors import ChannelError
from ....core.message.model import Table
from ...tasks import Tasks
from ..port import Delivery
from .connections import Connections
from .delivery import AmqpDelivery
from .encoding import received
from .failures import translated
from .returned import ReturnedNumbers
from .settlements import ChannelSettlements

AHEAD_OWN: Final = 100
AHEAD_SHARED: Final = 10
"""Messages taken ahead from a queue that others may consume too."""
SHORT: Final = 0.75
"""The share of messages taken ahead of which outcomes are not durable, from which on the queue is
short."""
AGAIN_S: Final = 0.01
"""After a message was requeued by a consumer that goes on, it is delivered again."""
RETRY_S, RETRY_MAX_S = 0.2, 5.0
RETURN_POLLS: Final = 100
"""Others may have begun to consume the queue, in which case it never has a consumer less."""
RETURN_POLL_S: Final = 0.01
_NOT_FOUND: Final = 404

log = logging.getLogger(__name__)


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
        is_shared: bool,
        on_delivery: Callable[[Delivery], None],
        on_cancel: Callable[[], Awaitable[None]],
        arguments: Table | None = None,
        returned: ReturnedNumbers | None = None,
        on_short: Callable[[], None] = lambda: None,
    ) -> None:
        self._connections = connections
        self._place = vhost, queue
        self._prefetch = prefetch
        self._ahead = ahead
        self._is_shared = is_shared
        self._on_delivery = on_delivery
        self._on_cancel = on_cancel
        self._on_short = on_short
        self._arguments = cast(Any, arguments)
        self._returned = returned or ReturnedNumbers()
        self._channel: AbstractChannel | None = None
        self._settlements: ChannelSettlements | None = None
        self._ready: list[AmqpDelivery] = []
        """Messages that wait here, in their order."""
        self._out: dict[AmqpDelivery, None] = {}
        """Messages that the hub has, and has not settled."""
        self._held = 0
        self._is_delivering = False
        self._is_paused = False
        self._stopped = asyncio.Event()
        self._again: asyncio.TimerHandle | None = None
        self._tasks = Tasks()
        self._watching: asyncio.Task[None] | None = None
        self._is_ending = False
        self.ended = asyncio.Event()
        """Set when it is cancelled, all is settled, and its channel is closed."""

    @property
    def is_cancelled(self) -> bool:
        return self._stopped.is_set()

    # -- the channel

    async def start(self) -> None:
        """Raises `ChannelError`: 404 if there is no such queue, 403 if it is in exclusive use."""
        self._watching = self._tasks.own(self._watch(await self._open()))

    async def _open(self) -> AbstractChannel:
        vhost, queue = self._place
        channel = await self._connections.channel(vhost)
        try:
            await self._consume(channel, queue)
        except BaseException:
            self._forget_channel()
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
            await channel.basic_consume(queue, take, arguments=self._arguments)

    async def _watch(self, channel: AbstractChannel | None) -> None:
        """Consumes again whenever the channel is lost; runs until it is cancelled."""
        while channel is not None:
            await asyncio.wait([channel.closing])
            self._forget_channel()
            channel = await self._reopened()

    async def _reopened(self) -> AbstractChannel | None:
        wait_s = RETRY_S
        while not self._stopped.is_set():
            try:
                channel = await self._open()
                if not self._stopped.is_set():
                    return channel
                await self._close_channel(channel)  # cancelled meanwhile
            except ChannelError as error:
                if error.code == _NOT_FOUND:
                    await self.cancel()
                    self._tasks.own(self._report_deleted())
                    return None
                log.info("queue '%s' in vhost '%s' is not consumed: %s", *self._place[::-1], error)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), wait_s)
            wait_s = min(2 * wait_s, RETRY_MAX_S)
        return None

    async def _report_deleted(self) -> None:
        await self._on_cancel()

    async def _cancelled_by_broker(self, _: object) -> None:
        """Closes the channel, as a queue that was deleted does not come back; `_watch` goes on."""
        if self._channel is not None:
            self._tasks.own(self._close_channel(self._channel))

    async def _close_channel(self, channel: AbstractChannel) -> None:
        with translated():
            await channel.close()

    def _forget_channel(self) -> None:
        for one in self._unsettled():
            if one.was_delivered:
                self._returned.remember(self._place, one.message, one.sequence)
        if self._settlements is not None:
            self._settlements.is_lost = True
        self._channel = self._settlements = None
        self._ready.clear()

    def _unsettled(self) -> list[AmqpDelivery]:
        """Returns the messages of this channel that are not settled, in their order."""
        out = (one for one in self._out if one.settlements is self._settlements)
        return sorted((*self._ready, *out))

    # -- messages

    def _take(self, settlements: ChannelSettlements, delivered: DeliveredMessage) -> None:
        if settlements is not self._settlements:
            return  # the channel is lost: RabbitMQ delivers it again
        tag = delivered.delivery_tag or 0
        settlements.delivered(tag)
        message, number = received(delivered)
        if number is None:
            number = self._returned.recall(self._place, message)
        self._ready.append(AmqpDelivery(self, settlements, tag, message, number))
        self._deliver()

    def _deliver(self) -> None:
        """Gives messages to the hub, as many as it may have."""
        if self._is_delivering:
            return
        self._is_delivering = True
        try:
            while self._ready and self._held < self._prefetch and self._again is None:
                if self._is_paused or self.is_cancelled:
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
        if len(self._out) - self._held >= self._ahead * SHORT:
            self._on_short()
        if self._ready:
            asyncio.get_running_loop().call_soon(self._deliver)

    def settled(self, delivery: AmqpDelivery) -> None:
        self._out.pop(delivery, None)
        delivery.release()
        self._finish()

    def requeue(self, delivery: AmqpDelivery) -> None:
        """Puts the message back before those that came after it. A consumer that goes on delivers
        it again in a moment; one that was cancelled returns it to its queue."""
        if delivery in self._out and delivery.settlements is self._settlements:
            delivery.message.redelivered = True
            insort(self._ready, delivery)
            if self._again is None and not self.is_cancelled:
                loop = asyncio.get_running_loop()
                self._again = loop.call_later(AGAIN_S, self._deliver_again)
        self.settled(delivery)

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
        """Stops deliveries. When the hub has settled what it has, messages that wait here return to
        their queue together with those that it requeues."""
        self._stopped.set()
        self._finish()

    async def end(self) -> None:
        await self.cancel()

    async def close(self) -> None:
        """Stops deliveries, and returns to the queue what is not settled."""
        self._stopped.set()
        self._ready = self._unsettled()
        self._out.clear()
        self._finish()
        await self.ended.wait()

    def _finish(self) -> None:
        if self.is_cancelled and not self._out and not self._is_ending:
            self._is_ending = True
            self._tasks.own(self._end())

    async def _end(self) -> None:
        try:
            if self._channel is not None and self._settlements is not None:
                await self._return_all(self._channel, self._settlements)
        finally:
            if self._watching is not None:
                await asyncio.wait([self._watching])
            self.ended.set()

    async def _return_all(self, channel: AbstractChannel, settlements: ChannelSettlements) -> None:
        await settlements.sent()
        try:
            before = await self._consumer_count(channel) if self._is_shared else 0
        finally:
            await self._close_channel(channel)
        if self._is_shared:
            await self._await_return(before)

    async def _consumer_count(self, channel: AbstractChannel) -> int:
        with translated():
            answer = await channel.queue_declare(self._place[1], passive=True)
        return answer.consumer_count or 0

    async def _await_return(self, before: int) -> None:
        """Waits until the queue has a consumer less: only then all is there for the next one."""
        channel = await self._connections.channel(self._place[0])
        try:
            for _ in range(RETURN_POLLS):
                if await self._consumer_count(channel) < before:
                    return
                await asyncio.sleep(RETURN_POLL_S)
        finally:
            await self._close_channel(channel)
