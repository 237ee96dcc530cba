"""Retry queues with fixed delays, and the queue of dead letters.

Both are shared by all subscriptions of a virtual host and stand on what any AMQP broker has
(RabbitMQ's TTL and DLX guides); `hub/engine/own.py` says what they are.

A message in a retry queue shares the fate of the queue that it comes back to. A queue that
somebody published into keeps it when the subscription is over; the queue of a subscription to an
exchange is deleted with it, with all messages, and what waits for it in retry queues is dropped
when it is due.

A message in a retry queue still ages (`lifetime.py`). When it expires it comes back, at most a
second late, and its queue treats it as any expired message. The replay of a dead letter counts its
time anew.
"""

from __future__ import annotations

from dataclasses import replace

from ...core.clock import Clock
from ...core.errors import ChannelError
from ...core.message.model import Message, Properties
from ..engine.own import DEAD_QUEUE, delay
from ..engine.port import Delivery, Engine, Outcome
from .envelope import DEAD_AT_MS, REASON, SUBSCRIPTION, Envelope, original, retry_properties
from .internal_headers import InternalHeaders
from .lifetime import left_s, with_arrival
from .retry import EARLY_S, step_s


class RetryQueues:
    """Every method returns once the engine has confirmed; then the original may be acked.

    Raises `ChannelError` or `NotQueued` where the engine would not take the message.
    """

    def __init__(self, engine: Engine, clock: Clock, internal_headers: InternalHeaders) -> None:
        self._engine = engine
        self._clock = clock
        self.internal_headers = internal_headers
        self._declared: set[tuple[str, str]] = set()

    async def settles(self, vhost: str, queue: str, delivery: Delivery, envelope: Envelope) -> bool:
        """Whether a message that is back is not to be delivered now: it is let go of as its queue
        would have, or enqueued for one step more."""
        now_s = self._now_s()
        life_s = left_s(envelope, delivery, now_s)
        if life_s is not None and life_s <= 0:
            delivery.expire(original(delivery.message, envelope))
            return True
        if not self.is_early(envelope):
            return False
        await self.enqueue_again(vhost, queue, delivery.message, envelope, life_s)
        delivery.ack()
        return True

    def is_early(self, envelope: Envelope) -> bool:
        return envelope.not_before - self._now_s() > EARLY_S

    def within_life_s(self, envelope: Envelope, delivery: Delivery, wait_s: float) -> float:
        """The wait, or what is left of the message's life if that is less; 0 if that is over."""
        life_s = left_s(envelope, delivery, self._now_s())
        return max(0.0, wait_s if life_s is None else min(wait_s, life_s))

    async def enqueue(
        self,
        vhost: str,
        queue: str,
        message: Message,
        envelope: Envelope,
        wait_s: float,
        delivery: Delivery | None = None,
    ) -> None:
        """The message comes back to the queue, in one step or several, after the wait; sooner if
        by its `delivery` it expires before."""
        now_s, life_s = self._now_s(), None
        waiting = replace(envelope, not_before=now_s + wait_s)
        if delivery is not None:
            waiting = with_arrival(waiting, delivery, now_s)
            life_s = left_s(waiting, delivery, now_s)
        await self.enqueue_again(vhost, queue, message, waiting, life_s)

    async def enqueue_again(
        self,
        vhost: str,
        queue: str,
        message: Message,
        envelope: Envelope,
        life_s: float | None = None,
    ) -> None:
        """One step more for a message that is back before its time, none that it does not live
        to see the end of: what expires while it waits is home then."""
        wait_s = envelope.not_before - self._now_s()
        step = step_s(wait_s if life_s is None else min(wait_s, life_s))
        name = await self._ensure_delay(vhost, step)
        properties = retry_properties(message, envelope)
        await self._publish(vhost, name, queue, properties, message.body)

    async def add_dead_letter(
        self, vhost: str, message: Message, envelope: Envelope, subscription_id: str, reason: str
    ) -> None:
        """Puts the message into the dead queue, with the reason."""
        await self._ensure_dead(vhost)
        properties = retry_properties(message, envelope)
        properties.headers = {
            **(properties.headers or {}),
            SUBSCRIPTION: subscription_id,
            REASON: reason,
            DEAD_AT_MS: int(self._clock.wall_s() * 1000),
        }
        await self._publish(vhost, "", DEAD_QUEUE.name, properties, message.body)

    def _now_s(self) -> float:
        """A step of the wall clock must not delay a message for longer."""
        return self._clock.steady_ms() / 1000

    async def _ensure_delay(self, vhost: str, seconds: int) -> str:
        """Gives the name of the exchange that leads to the delay."""
        exchange, queue, binding = delay(seconds)
        if (vhost, exchange.name) not in self._declared:
            await self._engine.declare_exchange(vhost, exchange)
            await self._engine.declare_queue(vhost, queue)
            await self._engine.bind(vhost, binding)
            self._declared.add((vhost, exchange.name))
        return exchange.name

    async def _ensure_dead(self, vhost: str) -> None:
        if (vhost, DEAD_QUEUE.name) not in self._declared:
            await self._engine.declare_queue(vhost, DEAD_QUEUE)
            self._declared.add((vhost, DEAD_QUEUE.name))

    async def _publish(
        self, vhost: str, exchange: str, key: str, properties: Properties, body: bytes
    ) -> None:
        name = exchange or key
        properties = await self.internal_headers.sealed(properties, body)
        try:
            outcome = await self._engine.publish(vhost, exchange, key, properties, body)
        except ChannelError:
            self._declared.discard((vhost, name))
            raise
        if outcome is not Outcome.ROUTED:
            self._declared.discard((vhost, name))  # maybe deleted: the next try declares it anew
            raise NotQueued(406, f"{name} did not take a message: {outcome.value}")


class NotQueued(ChannelError):
    """The broker confirmed, but no queue holds the message."""
