"""Publishing from the hub: one message, a batch in parts, or many messages of different targets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ...core.auth import User
from ...core.broker import Broker
from ...core.errors import ChannelError, Shortage
from ...core.local.publisher import LocalPublisher
from ...core.message.model import Properties
from ...core.queue.queue import Queue
from ...core.vhost import VirtualHost
from .commits import is_durable
from .names import Names
from .port import BatchOutcome, BatchPart, PublishOutcome, SinglePublish
from .transactions import EmbeddedTransactions

PARTS_AT_ONCE = 500
"""Of a batch, between two rounds of the loop: each may cost as much as a publish by itself."""


class EmbeddedPublisher:
    """Publishes to a `Broker` in this process, with the permissions of a user or as the hub."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._names = Names(broker, self)

    async def publish(
        self,
        user: User | None,
        vhost: str,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
        *,
        queue: str | None = None,
    ) -> PublishOutcome:
        host = self._names.vhost(vhost)
        targets = () if queue is None else (host.queue(queue, self),)
        return await self._publish(user, host, exchange, routing_key, properties, body, targets)

    async def publish_to(
        self,
        vhost: str,
        queues: Sequence[str],
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> PublishOutcome:
        host = self._names.vhost(vhost)
        targets = tuple(host.queue(name, self) for name in queues if name in host.queues)
        if not targets:
            return PublishOutcome.UNROUTED
        return await self._publish(None, host, "", routing_key, properties, body, targets)

    async def _publish(
        self,
        user: User | None,
        host: VirtualHost,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
        targets: tuple[Queue, ...],
    ) -> PublishOutcome:
        publisher = LocalPublisher(self._broker, host, user)
        publisher.publish(exchange, routing_key, properties, body, targets)
        if not await is_durable(self._broker, publisher.commit):
            return PublishOutcome.NOT_DURABLE
        if publisher.rejected_count:
            return PublishOutcome.REJECTED
        return PublishOutcome.UNROUTED if publisher.unrouted_count else PublishOutcome.ROUTED

    async def publish_batch(
        self,
        user: User | None,
        vhost: str,
        exchange: str,
        parts: Sequence[BatchPart],
        *,
        queue: str | None = None,
    ) -> BatchOutcome:
        host = self._names.vhost(vhost)
        publisher = LocalPublisher(self._broker, host, user)
        if queue is None:
            publisher.check(exchange, {one.routing_key for one in parts})
        try:
            for place, one in enumerate(parts):
                if place % PARTS_AT_ONCE == PARTS_AT_ONCE - 1:
                    publisher.flush()
                    await asyncio.sleep(0)
                queues = () if queue is None else (host.queue(queue, self),)
                publisher.add(exchange, one.routing_key, one.properties, one.bodies, queues)
        finally:
            publisher.flush()
        kept = await is_durable(self._broker, publisher.commit)
        return BatchOutcome(publisher.unrouted_count, publisher.rejected_count, kept)

    async def publish_each(
        self,
        user: User | None,
        vhost: str,
        publishes: Sequence[SinglePublish],
        *,
        are_copies: bool = False,
    ) -> Sequence[PublishOutcome | Exception]:
        host = self._names.vhost(vhost)
        publisher = LocalPublisher(self._broker, host, user, are_copies=are_copies)
        outcomes: list[PublishOutcome | Exception] = []
        for one in publishes:
            unrouted, rejected = publisher.unrouted_count, publisher.rejected_count
            try:
                queues = () if one.queue is None else (host.queue(one.queue, self),)
                publisher.publish(one.exchange, one.routing_key, one.properties, one.body, queues)
            except (ChannelError, Shortage, ValueError) as error:
                outcomes.append(error)
            else:
                outcomes.append(_outcome(publisher, unrouted, rejected))
        if await is_durable(self._broker, publisher.commit):
            return outcomes
        kept = PublishOutcome.NOT_DURABLE
        return [one if isinstance(one, Exception) else kept for one in outcomes]

    def has_transactions(self) -> bool:
        return True

    def transactions(self, vhost: str) -> EmbeddedTransactions:
        return EmbeddedTransactions(self._broker, self._names, vhost)


def _outcome(publisher: LocalPublisher, unrouted: int, rejected: int) -> PublishOutcome:
    """Returns the outcome of the last publish, from the counts before it."""
    if publisher.rejected_count > rejected:
        return PublishOutcome.REJECTED
    is_unrouted = publisher.unrouted_count > unrouted
    return PublishOutcome.UNROUTED if is_unrouted else PublishOutcome.ROUTED
