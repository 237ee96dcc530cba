"""A connection of the client library to a node, as the hub needs it."""

from __future__ import annotations

from typing import Final, cast

from aiormq.channel import Channel
from aiormq.connection import Connection

from .address import Node

CHANNEL_S: Final = 5.0


class NodeConnection(Connection):
    """Notices within 12 s that a node has fallen silent: twice as long as a heartbeat may take. A
    node that hears nothing of the hub closes the connection in about the same time."""

    HEARTBEAT_GRACE_MULTIPLIER = 2
    node: Node

    async def open_channel(self, *, confirms: bool) -> Channel:
        channel = await self.channel(publisher_confirms=confirms, timeout=CHANNEL_S)
        return cast(Channel, channel)
