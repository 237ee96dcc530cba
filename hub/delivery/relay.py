"""Carries messages from a queue to an exchange or queue of this hub, without an HTTP hop.

What AMQP can bind is bound in the broker; a queue as the source has no binding, so it is
consumed here, and each message published to the sink and acked once that is confirmed.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from ...core.message.model import Message, Properties
from ..engine.port import Delivery, Engine, Outcome
from ..owner_rights import Rights
from ..requests import Resource
from ..settings import HubSettings
from ..subscriptions.active import ActiveSubscription
from .dispatcher import BACK_OFF_S
from .envelope import HOPS, Envelope, hops_of
from .retry_queues import RetryQueues

PREFETCH = 100  # enough to share one sync of the log between publishes

log = logging.getLogger(__name__)


class Relay:
    """Publishes in the order of the source; one at a time fails, is held back and overtaken."""

    def __init__(
        self, engine: Engine, retry_queues: RetryQueues, settings: HubSettings, rights: Rights
    ) -> None:
        self._engine = engine
        self._retry_queues = retry_queues
        self._settings = settings
        self._rights = rights
        self._tasks: dict[asyncio.Task[None], None] = {}

    def offer(self, active: ActiveSubscription, delivery: Delivery) -> None:
        task = asyncio.create_task(self._run(active, delivery))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def drain(self, within_s: float) -> None:
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=within_s)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, active: ActiveSubscription, delivery: Delivery) -> None:
        sink = active.subscription.sink
        assert sink is not None  # only subscriptions with a sink are relayed
        try:
            if await self._forward(active, sink, delivery):
                delivery.ack()
                return
            log.warning("%s rejects what is relayed to it", sink)
        except asyncio.CancelledError:
            delivery.nack(requeue=True)
            return
        except Exception as error:
            log.warning("%s does not take what is relayed to it: %r", sink, error)
        await self._back_off(delivery)

    async def _back_off(self, delivery: Delivery) -> None:
        try:
            await asyncio.sleep(BACK_OFF_S)
        finally:
            delivery.nack(requeue=True)

    async def _forward(
        self, active: ActiveSubscription, sink: Resource, delivery: Delivery
    ) -> bool:
        """Whether the message is confirmed somewhere, and may be acked."""
        message = delivery.message
        envelope = await self._retry_queues.internal_headers.read_aside(message, delivery.sequence)
        hops = hops_of(message) + 1
        if hops > self._settings.max_hops:
            await self._bury(active, message, envelope, f"{hops} hops: a loop")
            return True
        reason = self._refuse_key(active, sink, envelope.routing_key)
        if reason is not None:
            await self._bury(active, message, envelope, reason)
            return True
        outcome = await self._publish(sink, envelope, _with_hops(message, hops), message.body)
        return outcome in (Outcome.ROUTED, Outcome.UNROUTED)

    def _refuse_key(self, active: ActiveSubscription, sink: Resource, key: str) -> str | None:
        """Why the owner may not write this key there. Who may write nothing there any more is
        about to lose the subscription, and with it no message."""
        owner = active.subscription.owner
        if sink.kind == "q" or self._rights.refuse_write(owner, sink, None) is not None:
            return None
        return self._rights.refuse_write(owner, sink, key)

    async def _bury(
        self, active: ActiveSubscription, message: Message, envelope: Envelope, reason: str
    ) -> None:
        subscription = active.subscription
        vhost = subscription.source.vhost
        await self._retry_queues.add_dead_letter(vhost, message, envelope, subscription.id, reason)

    async def _publish(
        self, sink: Resource, envelope: Envelope, properties: Properties, body: bytes
    ) -> Outcome:
        key = envelope.routing_key
        if sink.kind == "q":
            return await self._engine.publish(
                sink.vhost, "", key, properties, body, queue=sink.name
            )
        return await self._engine.publish(sink.vhost, sink.name, key, properties, body)


def _with_hops(message: Message, hops: int) -> Properties:
    headers = {**(message.properties.headers or {}), HOPS: hops}
    return replace(message.properties, headers=headers)
