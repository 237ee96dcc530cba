"""Notices a node that answers, and delivers nothing.

A node of RabbitMQ whose disk was full goes on without its log of quorum queues until it is
restarted. The other nodes confirm what is published by way of it, and what they have for a consumer
there never comes. So at each node that is in use the hub consumes a queue of its own, publishes to
it, and leaves the node if what was confirmed does not come.

A probe has a connection of its own: during an alarm RabbitMQ reads nothing more from a connection
that publishes, and so no acknowledgements either.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from aiormq.abc import DeliveredMessage

from ....core.errors import ChannelError
from ...tasks import Tasks
from . import bindings, topology
from .address import Node, node_name
from .connections import Connections
from .failures import translated
from .node_connection import NodeChannel, NodeConnection
from .publishing import CONFIRM_S

PROBE_S: Final = 5.0
"""Between two probes of a node."""
WAITS_S: Final = (5.0, 5.0, 1.0)
"""How long a node has after each confirm. What it had sent before the last one has been read then,
however long this process was paused."""

log = logging.getLogger(__name__)


class DeliveryProbe:
    """Publishes to a queue at a node, and consumes it."""

    def __init__(self, connection: NodeConnection) -> None:
        self._connection = connection
        self._queue = topology.probe_queue(node_name(connection.node))
        self._channel: NodeChannel | None = None
        self._arrived = asyncio.Event()

    async def _open(self) -> NodeChannel:
        queue = self._queue
        channel = await self._connection.open_channel(confirms=True)
        arguments = bindings.arguments_of(queue.arguments)
        await channel.queue_declare(
            queue.name, durable=queue.durable, arguments=arguments, timeout=CONFIRM_S
        )
        await channel.basic_consume(queue.name, self._take, no_ack=True, timeout=CONFIRM_S)
        return channel

    async def _take(self, _: DeliveredMessage) -> None:
        self._arrived.set()

    async def delivers(self) -> bool:
        """Returns whether anything comes while messages are confirmed. Raises `EngineUnavailable`
        if one is not: nothing is known then."""
        self._arrived.clear()
        for wait_s in WAITS_S:
            with translated():
                await self._publish()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), wait_s)
                return True
        return False

    async def _publish(self) -> None:
        if self._channel is None:
            self._channel = await self._open()
        name = self._queue.name
        await self._channel.basic_publish(
            b"", routing_key=name, mandatory=True, timeout=CONFIRM_S, wait=False
        )

    async def close(self) -> None:
        await self._connection.close()


class DeliveryProbes:
    """A probe of each node in use."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._probes: dict[Node, DeliveryProbe] = {}
        self._told: dict[Node, str] = {}
        """What was logged of a node."""
        self._tasks = Tasks()
        self._is_started = False

    def start(self) -> None:
        if not self._is_started:
            self._is_started = True
            self._tasks.own(self._watch())

    async def stop(self) -> None:
        await self._tasks.stop()
        await asyncio.gather(*map(self._close, tuple(self._probes)))

    async def _watch(self) -> None:
        while True:
            await self._round()
            await asyncio.sleep(PROBE_S)

    async def _round(self) -> None:
        """Probes each node in use. Whatever fails, as on a connection that is half dead, neither
        the other nodes nor the rounds after it miss a probe."""
        used = self._connections.nodes_in_use()
        works = [self._close(node) for node in self._probes.keys() - used.keys()]
        works += [self._look(node, vhost) for node, vhost in used.items()]
        for failure in await asyncio.gather(*works, return_exceptions=True):
            if failure is not None:
                log.error("a probe of RabbitMQ failed, the next one follows", exc_info=failure)

    async def _look(self, node: Node, vhost: str) -> None:
        try:
            probe = await self._opened(node, vhost)
            if await probe.delivers():
                self._told.pop(node, None)
            else:
                await self._leave(node, vhost)
        except ChannelError as error:
            self._tell(logging.INFO, node, f"it is not known whether it delivers: {error}")
            await self._close(node)

    async def _opened(self, node: Node, vhost: str) -> DeliveryProbe:
        found = self._probes.get(node)
        if found is None:
            with translated():
                connection = await self._connections.connect_to(node, vhost)
            found = self._probes[node] = DeliveryProbe(connection)
        return found

    async def _leave(self, node: Node, vhost: str) -> None:
        other = await self._connections.leave(node, vhost)
        self._tell(
            logging.WARNING,
            node,
            "it has confirmed messages for quorum queues, and delivers none: if `rabbitmqctl "
            "list_queues name online` does not show it, as after its disk was full, restart it; "
            + (f"the hub goes on at {other}" if other else "there is no other to go on at"),
        )
        if other:
            self._told.pop(node)
            await self._close(node)

    def _tell(self, level: int, node: Node, text: str) -> None:
        """Logs what has changed."""
        if self._told.get(node) != text:
            self._told[node] = text
            log.log(level, "RabbitMQ at %s: %s", node_name(node), text)

    async def _close(self, node: Node) -> None:
        probe = self._probes.pop(node, None)
        if probe is not None:
            await probe.close()
