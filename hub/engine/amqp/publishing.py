"""Publishes to the cluster with confirms.

RabbitMQ closes a channel on which something is published to an exchange that does not exist. So
each exchange has a channel of its own: who publishes to others notices nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiormq.abc import ChannelFrame
from aiormq.channel import Channel, Returning
from aiormq.exceptions import ChannelInvalidStateError, DeliveryError, PublishError

from ....core.wire.frames import body_frames, header_frame, method_frame, short_string
from ....core.wire.method_ids import BASIC_PUBLISH
from ...keyed_locks import KeyedLocks
from ..port import PublishOutcome
from .connections import Connections
from .encoding import EncodedProperties
from .failures import translated

CONFIRM_S: Final = 30.0
"""RabbitMQ confirms late while a node is replaced, and not at all during an alarm."""
CHANNELS: Final = 256
"""Exchanges with an open channel; others take over the one that was idle longest."""
LONGEST_KEY_BYTES: Final = 255
_RESERVED: Final = bytes(2)
_MANDATORY: Final = b"\x01"
"""The flag of a message that is returned if no queue takes it."""


class PublishChannel:
    """A channel for the publishes to one exchange.

    A message is written here, in one piece. The library finds the future of a confirm by its
    number, and that of a returned message by its message-id.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        """The publishes that are not confirmed, by message-id."""
        channel.closing.add_done_callback(self._closed)

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    async def publish(
        self, exchange: str, routing_key: str, properties: EncodedProperties, body: bytes
    ) -> PublishOutcome:
        """Returns when RabbitMQ has confirmed, refused or returned the message."""
        name = properties.message_id
        while name in self._waiting:  # the library could take one for the other
            await asyncio.wait([self._waiting[name]])
        with translated():
            confirmed = self._write(exchange, routing_key, properties, body)
            expiry = asyncio.get_running_loop().call_later(
                CONFIRM_S, self._expire, self.channel.delivery_tag, confirmed
            )
            try:
                return await _outcome(confirmed)
            finally:
                expiry.cancel()
                del self._waiting[name]
                self.channel.message_id_delivery_tag.pop(name, None)

    def _write(
        self, exchange: str, routing_key: str, properties: EncodedProperties, body: bytes
    ) -> asyncio.Future[Any]:
        channel = self.channel
        if channel.is_closed:
            raise ChannelInvalidStateError(f"{channel!r} closed")
        data = self._frames(exchange, routing_key, properties.raw, body)
        confirmed = asyncio.get_running_loop().create_future()
        channel.delivery_tag += 1
        channel.confirmations[channel.delivery_tag] = confirmed
        channel.message_id_delivery_tag[properties.message_id] = channel.delivery_tag
        self._waiting[properties.message_id] = confirmed
        channel.write_queue.put_nowait(ChannelFrame(data, should_close=False))
        return confirmed

    def _frames(self, exchange: str, routing_key: str, properties: bytes, body: bytes) -> bytes:
        key, number = routing_key.encode(), self.channel.number
        if len(key) > LONGEST_KEY_BYTES:
            raise ValueError(f"routing key of {len(key)} bytes: limit {LONGEST_KEY_BYTES}")
        arguments = b"".join((_RESERVED, short_string(exchange), short_string(key), _MANDATORY))
        method = method_frame(number, BASIC_PUBLISH, arguments)
        header = header_frame(number, len(body), properties)
        frame_max = self.channel.connection.connection_tune.frame_max
        return b"".join((method, header, *body_frames(number, body, frame_max)))

    def _expire(self, number: int, confirmed: asyncio.Future[Any]) -> None:
        if not confirmed.done():
            self.channel.confirmations[number] = Returning()  # its confirm is for nobody
            confirmed.set_exception(TimeoutError())

    def _closed(self, closing: asyncio.Future[Any]) -> None:
        """Fails what is not confirmed, with the reason that RabbitMQ has given."""
        error = None if closing.cancelled() else closing.exception()
        if not isinstance(error, Exception):
            error = ChannelInvalidStateError(f"{self.channel!r} closed")
        for one in self._waiting.values():
            if not one.done():
                one.set_exception(error)


async def _outcome(confirmed: asyncio.Future[Any]) -> PublishOutcome:
    try:
        await confirmed
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
