"""A connection of the client library, and its channels, as the hub needs them."""

from __future__ import annotations

import logging
from itertools import count
from typing import Final

from aiormq.channel import Channel
from aiormq.connection import Connection
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from .address import Node

FRAMES_AHEAD: Final = 100
"""Frames that are read from a connection before the channel has handled the first."""
OPEN_S: Final = 5.0

log = logging.getLogger(__name__)


class NodeChannel(Channel):
    """Runs consumers to their end, one message after the other: the library has a task for each.
    They must not wait for the channel."""

    async def _on_deliver_frame(self, frame: Basic.Deliver) -> None:
        header = await self._get_frame()
        assert isinstance(header, ContentHeader)
        message = await self._read_content(frame, header)
        consumer = self.consumers.get(frame.consumer_tag or "")
        if consumer is None:
            return
        try:
            await consumer(message)
        except Exception:
            log.exception("internal error in a consumer of RabbitMQ")


class NodeConnection(Connection):
    """Notices within 12 s that a node has fallen silent: twice as long as a heartbeat may take. A
    node that hears nothing of the hub closes the connection in about the same time."""

    HEARTBEAT_GRACE_MULTIPLIER = 2
    FRAME_BUFFER_SIZE = 0
    """What is to be sent does not wait for room: nobody waits until it was sent, either."""
    node: Node

    async def open_channel(self, *, confirms: bool) -> NodeChannel:
        await self.connected.wait()
        if self.is_closed:
            raise RuntimeError(f"{self!r} closed")
        number = next(one for one in count(1) if one not in self.channels)
        channel = NodeChannel(self, number, publisher_confirms=confirms, frame_buffer=FRAMES_AHEAD)
        self.channels[number] = channel
        await channel.open(timeout=OPEN_S)
        return channel
