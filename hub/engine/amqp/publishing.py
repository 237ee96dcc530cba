"""Publishes to the cluster with confirms.

RabbitMQ closes a channel on which something is published to an exchange that does not exist. So
each exchange has a channel of its own: who publishes to others notices nothing.
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiormq.channel import Channel
from aiormq.exceptions import DeliveryError, PublishError

from ...keyed_locks import KeyedLocks
from ..port import PublishOutcome
from .connections import Connections
from .encoding import EncodedProperties
from .failures import translated

CONFIRM_S: Final = 30.0
"""RabbitMQ confirms late while a node is replaced, and not at all during an alarm."""
CHANNELS: Final = 256
"""Exchanges with an open channel; others take over the one that was idle longest."""


class PublishChannel:
    """A channel for the publishes to one exchange."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._waiting: dict[str, asyncio.Future[None]] = {}
        """The publishes that are not confirmed, by message-id."""

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    async def publish(
        self, exchange: str, routing_key: str, properties: EncodedProperties, body: bytes
    ) -> PublishOutcome:
        """Returns when RabbitMQ has confirmed, refused or returned the message."""
        name = properties.message_id or ""
        while name in self._waiting:  # the library could take one for the other
            await asyncio.wait([self._waiting[name]])
        done = self._waiting[name] = asyncio.get_running_loop().create_future()
        try:
            with translated():
                return await self._publish(exchange, routing_key, properties, body)
        finally:
            del self._waiting[name]
            done.set_result(None)

    async def _publish(
        self, exchange: str, routing_key: str, properties: EncodedProperties, body: bytes
    ) -> PublishOutcome:
        try:
            await self.channel.basic_publish(
                body, exchange=exchange, routing_key=routing_key, properties=properties,
                mandatory=True, timeout=CONFIRM_S, wait=False,
            )  # fmt: skip
        except PublishError:
            return PublishOutcome.UNROUTED
        except DeliveryError:
            return PublishOutcome.REJECTED
        return PublishOutcome.ROUTED


class PublishChannels:
    """The channels by virtual host and exchange."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._open: dict[tuple[str, str], PublishChannel] = {}
        self._locks: KeyedLocks[tuple[str, str]] = KeyedLocks()

    async def publish(
        self,
        vhost: str,
        exchange: str,
        routing_key: str,
        properties: EncodedProperties,
        body: bytes,
    ) -> PublishOutcome:
        """Publishes, and waits for the confirm. Raises `ChannelError`, and `EngineUnavailable` if
        the outcome is unknown."""
        found = self._open.get((vhost, exchange))
        if found is None or found.channel.is_closed:
            found = await self._opened(vhost, exchange)
        return await found.publish(exchange, routing_key, properties, body)

    async def _opened(self, vhost: str, exchange: str) -> PublishChannel:
        place = vhost, exchange
        async with self._locks.of(place):
            found = self._open.pop(place, None)
            if found is None or found.channel.is_closed:
                await self._make_room()
                found = PublishChannel(await self._connections.channel(vhost, confirms=True))
            self._open[place] = found
            return found

    async def _make_room(self) -> None:
        """Closes the channel that was opened first among those that are idle, if there are many."""
        if len(self._open) < CHANNELS:
            return
        for place, one in tuple(self._open.items()):
            if one.is_idle:
                del self._open[place]
                with translated():
                    await one.channel.close()
                return
