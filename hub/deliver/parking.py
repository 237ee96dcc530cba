"""Where messages wait: delay queues of fixed steps, and one queue for what failed for good.

Both are shared by all subscriptions of a virtual host and stand on what any AMQP broker has
(RabbitMQ's TTL and DLX guides); `hub/engine/own.py` says what they are.

What is parked shares the fate of the queue that it comes back to. A queue that somebody published
into keeps it when the subscription is over; the queue that an exchange's subscription had goes with
it, with all that waited there, and what was parked for it is dropped when its time has come.
"""

from __future__ import annotations

from dataclasses import replace

from ...core.clock import Clock
from ...core.errors import ChannelError
from ...core.model import Message, Properties
from ..engine.own import DEAD_QUEUE, delay
from ..engine.port import Engine, Outcome
from .envelope import Envelope, parked_properties
from .retry import EARLY_S, step_s

SUBSCRIPTION = "x-hub-subscription"
REASON = "x-hub-reason"
DEAD_AT_MS = "x-hub-dead-at"


class Parking:
    """Every method returns once the engine has confirmed; then the original may be acked.

    Raises `ChannelError` or `NotParked` where the engine would not take the message.
    """

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._declared: set[tuple[str, str]] = set()

    def is_early(self, envelope: Envelope) -> bool:
        return envelope.not_before - self._now_s() > EARLY_S

    async def park(
        self, vhost: str, queue: str, message: Message, envelope: Envelope, wait_s: float
    ) -> None:
        """The message comes back to the queue, in one step or several, after the wait."""
        waiting = replace(envelope, not_before=self._now_s() + wait_s)
        await self.park_again(vhost, queue, message, waiting)

    async def park_again(
        self, vhost: str, queue: str, message: Message, envelope: Envelope
    ) -> None:
        """One step more for a message that is back before its time."""
        name = await self._ensure_delay(vhost, step_s(envelope.not_before - self._now_s()))
        properties = parked_properties(message, envelope)
        await self._publish(vhost, name, queue, properties, message.body)

    async def bury(
        self, vhost: str, message: Message, envelope: Envelope, subscription_id: str, reason: str
    ) -> None:
        """Puts the message into the dead queue, with the reason."""
        await self._ensure_dead(vhost)
        properties = parked_properties(message, envelope)
        properties.headers = {
            **(properties.headers or {}),
            SUBSCRIPTION: subscription_id,
            REASON: reason,
            DEAD_AT_MS: int(self._clock.wall_s() * 1000),
        }
        await self._publish(vhost, "", DEAD_QUEUE.name, properties, message.body)

    def _now_s(self) -> float:
        """A step of the wall clock must not park a message for longer."""
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
        try:
            outcome = await self._engine.publish(vhost, exchange, key, properties, body)
        except ChannelError:
            self._declared.discard((vhost, name))
            raise
        if outcome is not Outcome.ROUTED:
            self._declared.discard((vhost, name))  # maybe deleted: the next try declares it anew
            raise NotParked(406, f"{name} did not take a message: {outcome.value}")


class NotParked(ChannelError):
    """The broker confirmed, but no queue holds the message."""
