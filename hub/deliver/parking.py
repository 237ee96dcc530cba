"""Where messages wait: delay queues of fixed steps, and one queue for what failed for good.

Both are shared by all subscriptions of a virtual host and stand on what any AMQP broker has.
`hub.retry.30s` is a fanout exchange and the queue bound to it, whose time to live is 30 s and
whose dead letters go to the default exchange: published with the name of a queue as its key, a
message comes back to that queue when the time is over (RabbitMQ's TTL and DLX guides).

What is parked shares the fate of the queue that it comes back to. A queue that somebody published
into keeps it when the subscription is over; the queue that an exchange's subscription had goes with
it, with all that waited there, and what was parked for it is dropped when its time has come.
"""

from __future__ import annotations

from dataclasses import replace

from ...core.clock import Clock
from ...core.errors import ChannelError
from ...core.model import Message, Properties, Table
from ..engine.port import BindingSpec, Engine, ExchangeSpec, Outcome, QueueSpec
from .envelope import DELAY_PREFIX, Envelope, parked_properties
from .retry import EARLY_S, step_s

DEAD_QUEUE = "hub.dead"
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
        name = f"{DELAY_PREFIX}{step_s(envelope.not_before - self._now_s())}s"
        await self._ensure_delay(vhost, name)
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
        await self._publish(vhost, "", DEAD_QUEUE, properties, message.body)

    def _now_s(self) -> float:
        """A step of the wall clock must not park a message for longer."""
        return self._clock.steady_ms() / 1000

    async def _ensure_delay(self, vhost: str, name: str) -> None:
        if (vhost, name) in self._declared:
            return
        ttl_ms = int(name.removeprefix(DELAY_PREFIX).removesuffix("s")) * 1000
        arguments: Table = {
            "x-message-ttl": ttl_ms,
            "x-dead-letter-exchange": "",
            # Home may be full by then, or know the message by its id for deduplication.
            "x-dead-letter-strategy": "at-least-once",
        }
        await self._engine.declare_exchange(vhost, ExchangeSpec(name, "fanout"))
        await self._engine.declare_queue(vhost, QueueSpec(name, arguments=arguments))
        await self._engine.bind(vhost, BindingSpec(name, name))
        self._declared.add((vhost, name))

    async def _ensure_dead(self, vhost: str) -> None:
        if (vhost, DEAD_QUEUE) not in self._declared:
            await self._engine.declare_queue(vhost, QueueSpec(DEAD_QUEUE))
            self._declared.add((vhost, DEAD_QUEUE))

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
