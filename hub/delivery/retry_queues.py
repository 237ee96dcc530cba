"""Retry queues with fixed delays, and the queue of dead letters.

Both are shared by all subscriptions of a virtual host, and need only what any AMQP broker has (TTL
and dead-letter exchanges); `hub/engine/own.py` defines them.

A message in a retry queue returns to its queue, also when the subscription has ended. The queue of
a subscription to an exchange is deleted with the subscription: messages that return to it then are
dropped.

A message in a retry queue still ages (`lifetime.py`). When it expires it returns, at most a second
late, and is expired as in its queue. The age of a replayed dead letter begins at 0.
"""

from __future__ import annotations

from dataclasses import replace

from ...core.clock import Clock
from ...core.errors import ChannelError
from ...core.message.model import Message, Properties
from ..engine.own import DEAD_QUEUE, delay
from ..engine.port import Delivery, Engine, PublishOutcome
from .envelope import DEAD_AT_MS, REASON, SUBSCRIPTION, Envelope, original, retry_properties
from .internal_headers import InternalHeaders
from .lifetime import left_s, with_arrival
from .retry import EARLY_S, step_s


class RetryQueues:
    """Publishes copies of failed messages to retry queues and to the dead-letter queue.

    Every method returns once the engine has confirmed; then the original may be acked.

    Raises `ChannelError` or `NotQueued` if the engine does not take the message.
    """

    def __init__(self, engine: Engine, clock: Clock, internal_headers: InternalHeaders) -> None:
        self._engine = engine
        self._clock = clock
        self.internal_headers = internal_headers
        self._declared: set[tuple[str, str]] = set()

    async def settle_returned(
        self, vhost: str, queue: str, delivery: Delivery, envelope: Envelope
    ) -> bool:
        """Settles a returned message that is not to be delivered now: expires it, or enqueues it
        for another step. Returns whether it did."""
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

    def limited_to_expiry_s(self, envelope: Envelope, delivery: Delivery, wait_s: float) -> float:
        """Returns the wait, or the time until the message expires if that is shorter."""
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
        """Publishes a copy that returns to the queue after the wait, in one step or several, or
        when it expires."""
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
        """Enqueues for the longest step that ends before the message is due, or expires."""
        wait_s = envelope.not_before - self._now_s()
        step = step_s(wait_s if life_s is None else min(wait_s, life_s))
        name = await self._ensure_delay(vhost, step)
        properties = retry_properties(message, envelope)
        await self._publish(vhost, name, queue, properties, message.body)

    async def deliver_now(
        self, vhost: str, queue: str, message: Message, envelope: Envelope
    ) -> None:
        """Publishes a copy of a message from a retry queue to its queue, to be delivered now; its
        failures stay counted."""
        properties = retry_properties(message, replace(envelope, not_before=0.0))
        await self._publish(vhost, "", queue, properties, message.body)

    async def add_dead_letter(
        self, vhost: str, message: Message, envelope: Envelope, subscription_id: str, reason: str
    ) -> None:
        """Publishes a copy to the queue of dead letters, with the reason."""
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
        """Returns steady time: a step of the wall clock must not delay a message."""
        return self._clock.steady_ms() / 1000

    async def _ensure_delay(self, vhost: str, seconds: int) -> str:
        """Returns the name of the exchange in front of the delay queue."""
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
            outcome = await self._engine.publish(None, vhost, exchange, key, properties, body)
        except ChannelError:
            self._declared.discard((vhost, name))
            raise
        if outcome is not PublishOutcome.ROUTED:
            self._declared.discard((vhost, name))  # it may be deleted: the next try declares it
            raise NotQueued(406, f"{name} did not take a message: {outcome.value}")


class NotQueued(ChannelError):
    """The broker confirmed, but no queue holds the message."""
