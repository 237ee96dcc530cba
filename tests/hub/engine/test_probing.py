"""Probes of a RabbitMQ node; what is done about a failed one is in
`tests/conformance/test_promises_on_rabbitmq.py`."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

import httpx
import pytest

from tests.conformance.webhooks import AUTH
from tests.support.hub_on_rabbitmq import PASSWORD, USER
from tests.support.process import wait_until
from tests.support.rabbitmq import RabbitMQServer
from warrenmq.hub.engine.amqp import probing
from warrenmq.hub.engine.amqp.address import read_address
from warrenmq.hub.engine.amqp.connections import Connections
from warrenmq.hub.engine.amqp.topology import probe_queue

WAIT_S = 60.0
READ_BYTES = 64 * 1024


class Relay:
    """Passes connections on to a node, and tells of each one."""

    def __init__(self, node: RabbitMQServer) -> None:
        self._node = node
        self.accepted: asyncio.Queue[StreamWriter] = asyncio.Queue()

    async def take(self, reader: StreamReader, writer: StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._node.host, self._node.port)
        self.accepted.put_nowait(writer)
        await asyncio.gather(self._pass_on(reader, back), self._pass_on(there, writer))

    async def _pass_on(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(READ_BYTES):
                writer.write(data)
        writer.close()


async def test_probing_goes_on_after_an_unexpected_error(
    node: RabbitMQServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The connection of a probe is cut, and can't even be closed in order."""
    monkeypatch.setattr(probing, "PROBE_S", 0.1)
    relay = Relay(node)
    async with asyncio.timeout(WAIT_S), await asyncio.start_server(relay.take, node.host) as server:
        port = server.sockets[0].getsockname()[1]
        address = read_address(f"amqp://{USER}:{PASSWORD}@{node.host}:{port}/")
        connections = Connections(address, "", lambda: None)
        await connections.channel("/")
        await relay.accepted.get()
        probes = probing.DeliveryProbes(connections)
        probes.start()
        cut = await relay.accepted.get()
        queue = f"{node.management_url}/api/queues/%2F/{probe_queue(f'{node.host}:{port}').name}"
        await asyncio.to_thread(
            wait_until, lambda: httpx.get(queue, auth=AUTH).is_success, WAIT_S, "the probe's queue"
        )
        with monkeypatch.context() as patched:
            patched.setattr(probing.DeliveryProbe, "close", fail)
            cut.transport.abort()
            await relay.accepted.get()
        await probes.stop()
        await connections.close()
    assert "it is half dead" in caplog.text


async def fail(_: probing.DeliveryProbe) -> None:
    raise RuntimeError("it is half dead")
