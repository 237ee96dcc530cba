"""Publishes as users and as the hub, with RabbitMQ's permissions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ....core.auth import User
from ....core.auth.authorization import at_topics, to_publish
from ....core.errors import (
    ChannelError,
    Shortage,
    access_refused,
    not_found,
    precondition_failed,
)
from ....core.message.model import Properties
from ..port import BatchOutcome, BatchPart, PublishOutcome, SinglePublish
from .check import IMPERSONATOR
from .connections import Connections
from .encoding import encoded
from .exchanges import Exchanges
from .mirror import Mirror
from .publishing import PublishChannels

UNCONFIRMED: Final = 500
"""Messages of a batch that wait for their confirms at the same time."""
_NOT_FOUND: Final = 404


class AmqpPublisher:
    """The part of the port that publishes. RabbitMQ's own check is of the hub's user, so who may
    publish is decided here, with the permissions that users have there."""

    def __init__(self, connections: Connections, exchanges: Exchanges, mirror: Mirror) -> None:
        self._exchanges = exchanges
        self._alarms = mirror
        self._publish_channels = PublishChannels(connections)

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
        one = SinglePublish(exchange, routing_key, properties, body, queue)
        return await self._publish_one(user, vhost, one)

    async def _publish_one(
        self, user: User | None, vhost: str, one: SinglePublish
    ) -> PublishOutcome:
        exchange, queue = one.exchange, one.queue
        if user is not None:
            await self._require_right(user, vhost, exchange, [one.routing_key], queue)
            _check_user_id(user, one.properties)
        elif exchange:
            await self._exchanges.require(vhost, exchange)
        if queue is None:
            return await self._publish_to_exchange(vhost, one)
        found = encoded(one.properties, one.routing_key, is_repeatable=one.is_repeatable)
        outcome = await self._publish_channels.publish(vhost, "", queue, found, one.body)
        if outcome is PublishOutcome.UNROUTED:
            raise not_found(f"no queue '{queue}' in vhost '{vhost}'")
        return outcome

    async def _publish_to_exchange(self, vhost: str, one: SinglePublish) -> PublishOutcome:
        found = encoded(one.properties, is_repeatable=one.is_repeatable)
        try:
            return await self._publish_channels.publish(
                vhost, one.exchange, one.routing_key, found, one.body
            )
        except ChannelError as error:
            if error.code == _NOT_FOUND:
                self._exchanges.known.pop((vhost, one.exchange), None)
            raise

    async def publish_to(
        self,
        vhost: str,
        queues: Sequence[str],
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> PublishOutcome:
        single = [SinglePublish("", routing_key, properties, body, queue) for queue in queues]
        outcomes = await self.publish_each(None, vhost, single)
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not _is_missing(outcome):
                raise outcome
        there = {one for one in outcomes if isinstance(one, PublishOutcome)}
        for worst in (PublishOutcome.REJECTED, PublishOutcome.ROUTED):
            if worst in there:
                return worst
        return PublishOutcome.UNROUTED

    async def publish_batch(
        self,
        user: User | None,
        vhost: str,
        exchange: str,
        parts: Sequence[BatchPart],
        *,
        queue: str | None = None,
    ) -> BatchOutcome:
        if user is not None:
            keys = list({part.routing_key for part in parts})
            await self._require_right(user, vhost, exchange, keys, queue)
        single = [
            SinglePublish(exchange, part.routing_key, part.properties, body, queue)
            for part in parts
            for body in part.bodies
        ]
        outcomes = await self.publish_each(user, vhost, single)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return BatchOutcome(
            unrouted=outcomes.count(PublishOutcome.UNROUTED),
            rejected=outcomes.count(PublishOutcome.REJECTED),
        )

    async def publish_each(
        self,
        user: User | None,
        vhost: str,
        publishes: Sequence[SinglePublish],
        *,
        are_copies: bool = False,
    ) -> Sequence[PublishOutcome | Exception]:
        outcomes: list[PublishOutcome | Exception] = []
        for first in range(0, len(publishes), UNCONFIRMED):
            some = publishes[first : first + UNCONFIRMED]
            # Each is written before the next is begun: their order stays.
            tasks = (self._publish_single(user, vhost, one, are_copies) for one in some)
            outcomes += await asyncio.gather(*tasks)
        return outcomes

    async def _publish_single(
        self, user: User | None, vhost: str, one: SinglePublish, are_copies: bool
    ) -> PublishOutcome | Exception:
        author = one.properties.user_id
        if are_copies and user is not None and author not in (None, user.name):
            return await self._publish_copy(user, vhost, one)
        try:
            return await self._publish_one(user, vhost, one)
        except (ChannelError, Shortage, ValueError) as error:
            return error

    async def _publish_copy(
        self, user: User, vhost: str, one: SinglePublish
    ) -> PublishOutcome | Exception:
        """Publishes a message that has another author, with the user's right to publish."""
        try:
            await self._require_right(user, vhost, one.exchange, [one.routing_key], one.queue)
            return await self._publish_one(None, vhost, one)
        except (ChannelError, Shortage, ValueError) as error:
            return error

    async def _require_right(
        self, user: User, vhost: str, exchange: str, keys: Sequence[str], queue: str | None
    ) -> None:
        if self._alarms.shortage is not None:
            raise self._alarms.shortage
        if queue is not None:
            to_publish(user, vhost, "queue", queue)
            return
        to_publish(user, vhost, "exchange", exchange)
        if not exchange:
            return
        spec = await self._exchanges.require(vhost, exchange)
        if spec.internal:
            raise access_refused(
                f"cannot publish to internal exchange '{exchange}' in vhost '{vhost}'"
            )
        topics = at_topics(user, vhost, exchange, spec.type, spec.arguments)
        if topics is not None:
            for key in keys:
                topics.require("write", key)


def _check_user_id(user: User, properties: Properties) -> None:
    user_id = properties.user_id
    if user_id is not None and user_id != user.name and IMPERSONATOR not in user.tags:
        raise precondition_failed(
            f"user_id property set to '{user_id}' but authenticated user was '{user.name}'"
        )


def _is_missing(error: Exception) -> bool:
    return isinstance(error, ChannelError) and error.code == _NOT_FOUND
