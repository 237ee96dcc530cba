"""Moves messages from a queue to an exchange or queue of this hub, without HTTP.

An exchange as the source is bound to the sink in the broker. A queue has no bindings, so it is
consumed here: each message is published to the sink, and acknowledged when that is confirmed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from ...core.message.model import Message, Properties, copy_keys
from ..engine.port import Delivery, Engine, PublishOutcome
from ..owner_rights import SubscriberRights
from ..requests import Resource
from ..settings import HubSettings
from ..subscriptions.active import ActiveSubscription
from .dispatcher import BACK_OFF_S
from .envelope import HOPS, Envelope, hops_of
from .retry_queues import RetryQueues

PREFETCH = 100  # enough to share one sync of the log between publishes

log = logging.getLogger(__name__)


class Relay:
    """Publishes in the order of the source; a message that fails is requeued, and overtaken."""

    def __init__(
        self,
        engine: Engine,
        retry_queues: RetryQueues,
        settings: HubSettings,
        rights: SubscriberRights,
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
            log.warning("relayed message rejected by %s", sink)
        except asyncio.CancelledError:
            delivery.nack(requeue=True)
            return
        except Exception as error:
            log.warning("relaying to %s failed: %r", sink, error)
        await self._back_off(delivery)

    async def _back_off(self, delivery: Delivery) -> None:
        try:
            await asyncio.sleep(BACK_OFF_S)
        finally:
            delivery.nack(requeue=True)

    async def _forward(
        self, active: ActiveSubscription, sink: Resource, delivery: Delivery
    ) -> bool:
        """Returns whether the message is confirmed, and may be acknowledged."""
        message = delivery.message
        envelope = await self._retry_queues.internal_headers.read_in_thread(
            message, delivery.sequence
        )
        hops = hops_of(message) + 1
        if hops > self._settings.max_hops:
            await self._dead_letter(active, message, envelope, f"{hops} hops: a loop")
            return True
        # BCC has no header any more.
        keys = [envelope.routing_key, *copy_keys(message.properties.headers or {})]
        reason = self._refuse_keys(active, sink, keys)
        if reason is not None:
            await self._dead_letter(active, message, envelope, reason)
            return True
        outcome = await self._publish(sink, envelope, _with_hops(message, hops), message.body)
        return outcome in (PublishOutcome.ROUTED, PublishOutcome.UNROUTED)

    def _refuse_keys(
        self, active: ActiveSubscription, sink: Resource, keys: Sequence[str]
    ) -> str | None:
        """Returns why the owner may not publish with these keys, None if nothing is wrong. An owner
        who may not write to the sink at all is about to lose the subscription: no message is
        dead-lettered for that."""
        owner = active.subscription.owner
        if sink.kind == "q" or self._rights.write_refusal(owner, sink, None) is not None:
            return None
        reasons = (self._rights.write_refusal(owner, sink, key) for key in keys)
        return next((reason for reason in reasons if reason is not None), None)

    async def _dead_letter(
        self, active: ActiveSubscription, message: Message, envelope: Envelope, reason: str
    ) -> None:
        subscription = active.subscription
        vhost = subscription.source.vhost
        await self._retry_queues.add_dead_letter(vhost, message, envelope, subscription.id, reason)

    async def _publish(
        self, sink: Resource, envelope: Envelope, properties: Properties, body: bytes
    ) -> PublishOutcome:
        key = envelope.routing_key
        if sink.kind == "q":
            return await self._engine.publish(
                None, sink.vhost, "", key, properties, body, queue=sink.name
            )
        return await self._engine.publish(None, sink.vhost, sink.name, key, properties, body)


def _with_hops(message: Message, hops: int) -> Properties:
    headers = {**(message.properties.headers or {}), HOPS: hops}
    return replace(message.properties, headers=headers)
