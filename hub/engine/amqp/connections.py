"""Connections to the cluster: to the first node that answers, anew after each loss."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from aiormq.exceptions import AMQPError, ProbableAuthenticationError
from yarl import URL

from ..errors import EngineUnavailable
from .address import EngineAddress, Node, node_name
from .failures import reason, translated
from .node_connection import NodeChannel, NodeConnection
from .transport import CheckedTransport, tls_context

CHANNELS_AT_MOST: Final = 1_000
"""Channels of a connection; RabbitMQ takes 2,047 by default."""
CONNECT_S: Final = 5.0
PAUSE_S: Final = 0.5
"""After no node has answered, calls fail at once for so long."""
HEARTBEAT_S: Final = 5
LEFT_S: Final = 300.0
"""How long a node that was left is tried last."""
TAKEN_OVER: Final = "another hub has taken over"
"""With this reason the next hub closes the connections of one that may still be there."""

log = logging.getLogger(__name__)


class Connections:
    """Opens channels in any virtual host. Those of a connection that is lost are closed; whoever
    needs one asks for another."""

    def __init__(
        self, address: EngineAddress, hub_id: str, on_taken_over: Callable[[], None]
    ) -> None:
        self._address = address
        self._name = connection_name(hub_id)
        self._on_taken_over = on_taken_over
        self._transport = CheckedTransport(is_tls=address.scheme == "amqps")
        self._tls = tls_context(address)
        self._next = 0
        """The node that is tried first."""
        self._left: dict[Node, float] = {}
        """Nodes that delivered nothing, and until when they are tried last."""
        self._open: dict[str, list[NodeConnection]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._failures: dict[str, tuple[float, str]] = {}
        """By virtual host, until when no connection is tried, and why."""
        self.is_stopped = False

    async def channel(self, vhost: str, *, confirms: bool = False) -> NodeChannel:
        """Opens a channel. Raises `EngineUnavailable`."""
        connection = await self._connection(vhost)
        with translated():
            return await connection.open_channel(confirms=confirms)

    def nodes_in_use(self) -> dict[Node, str]:
        """Returns the nodes that are connected, with the virtual host of one of the connections."""
        return {
            one.node: vhost for vhost, found in self._open.items() for one in found if one.is_opened
        }

    async def leave(self, node: Node, vhost: str) -> str:
        """Closes the connections to a node if another one answers, whose name it returns, else an
        empty one. For some minutes the node is tried last."""
        self._left[node] = time.monotonic() + LEFT_S
        async with self._locks.setdefault(vhost, asyncio.Lock()):
            others = [one for one in self._in_turn() if not self._is_left(one)]
            connection, _ = await self._first(others, vhost)
            if connection is None:
                return ""
            self._open.setdefault(vhost, []).append(connection)
        closing = []
        for found in self._open.values():
            closing += [one for one in found if one.node == node]
            found[:] = [one for one in found if one.node != node]
        await asyncio.gather(*(one.close() for one in closing), return_exceptions=True)
        return node_name(connection.node)

    async def close(self) -> None:
        self.is_stopped = True
        opened = [connection for found in self._open.values() for connection in found]
        self._open.clear()
        await asyncio.gather(*(one.close() for one in opened), return_exceptions=True)

    async def _connection(self, vhost: str) -> NodeConnection:
        async with self._locks.setdefault(vhost, asyncio.Lock()):
            found = [one for one in self._open.get(vhost, ()) if one.is_opened]
            self._open[vhost] = found
            for connection in found:
                if len(connection.channels) < CHANNELS_AT_MOST:
                    return connection
            connection = await self._connect(vhost)
            found.append(connection)
            return connection

    async def _connect(self, vhost: str) -> NodeConnection:
        if self.is_stopped:
            raise EngineUnavailable("the server is stopping")
        until_s, failure = self._failures.get(vhost, (0.0, ""))
        if time.monotonic() < until_s:
            raise EngineUnavailable(failure)
        connection, failures = await self._first(sorted(self._in_turn(), key=self._is_left), vhost)
        if connection is not None:
            return connection
        tried = "; ".join(f"{node}: {why}" for node, why in failures.items())
        text = f"no connection to vhost '{vhost}' of RabbitMQ ({tried})"
        if not failure:
            log.warning("%s; it is tried until there is one", text)
        self._failures[vhost] = time.monotonic() + PAUSE_S, text
        raise EngineUnavailable(text)

    def _in_turn(self) -> list[Node]:
        nodes = self._address.nodes
        return [*nodes[self._next :], *nodes[: self._next]]

    def _is_left(self, node: Node) -> bool:
        return time.monotonic() < self._left.get(node, 0.0)

    async def _first(
        self, nodes: Sequence[Node], vhost: str
    ) -> tuple[NodeConnection | None, dict[str, str]]:
        """Connects to the first one that answers; returns also why those before it have not."""
        failures: dict[str, str] = {}
        for node in nodes:
            try:
                connection = await self.connect_to(node, vhost)
            except (AMQPError, OSError, TimeoutError) as error:
                failures[node_name(node)] = _why(error)
            else:
                self._next = self._address.nodes.index(node)
                self._report_connected(node_name(node), vhost)
                return connection, failures
        return None, failures

    def _report_connected(self, node: str, vhost: str) -> None:
        level = logging.WARNING if self._failures.pop(vhost, None) else logging.INFO
        log.log(level, "connected to RabbitMQ at %s, vhost '%s'", node, vhost)

    async def connect_to(self, node: Node, vhost: str) -> NodeConnection:
        """Opens a connection that the caller closes. Raises the library's errors."""
        host, port = node
        url = URL.build(
            scheme=self._address.scheme,
            user=self._address.user,
            password=self._address.password,
            host=host,
            port=port,
            query={"heartbeat": str(HEARTBEAT_S), "name": self._name},
        )
        connection = NodeConnection(url, context=self._tls, transport_factory=self._transport)
        connection.node = node
        connection.vhost = vhost  # in a URL not each name could be written
        async with asyncio.timeout(CONNECT_S):
            await connection.connect()
        connection.closing.add_done_callback(self._closed)
        return connection

    def _closed(self, closing: asyncio.Future[Any]) -> None:
        error = None if closing.cancelled() else closing.exception()
        if error is not None and TAKEN_OVER in reason(error):
            self._on_taken_over()


def connection_name(hub_id: str) -> str:
    """Returns how RabbitMQ names a hub's connections."""
    return f"Warren hub {hub_id}".rstrip()


def _why(error: Exception) -> str:
    if isinstance(error, ProbableAuthenticationError):
        return "user or password are refused"
    return reason(error)
