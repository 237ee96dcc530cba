"""Probes of a RabbitMQ node; what is done about a failed one is in
`tests/conformance/test_promises_on_rabbitmq.py`."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest

from tests.support.hub_on_rabbitmq import PASSWORD, USER, ask
from tests.support.process import wait_until
from tests.support.rabbitmq import RabbitMQServer
from warrenmq.hub.engine.amqp import probing
from warrenmq.hub.engine.amqp.address import read_address
from warrenmq.hub.engine.amqp.connections import Connections
from warrenmq.hub.engine.amqp.topology import probe_queue

WAIT_S = 60.0


async def test_probing_goes_on_after_an_unexpected_error(
    node: RabbitMQServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """RabbitMQ ends the connection of a probe, which can't even be closed in order."""
    monkeypatch.setattr(probing, "PROBE_S", 0.1)
    url = f"amqp://{USER}:{PASSWORD}@{node.host}:{node.port}/"
    connections = Connections(read_address(url), "", lambda: None)
    probes = probing.DeliveryProbes(connections)
    await connections.channel("/")
    probes.start()
    ended = await asyncio.to_thread(probing_connection, node)
    with monkeypatch.context() as patched:
        patched.setattr(probing.DeliveryProbe, "close", fail)
        await asyncio.to_thread(ask, node, "DELETE", f"connections/{quote(ended)}")
        await asyncio.to_thread(probing_connection, node, ended)
    await probes.stop()
    await connections.close()
    assert "it is half dead" in caplog.text


async def fail(_: probing.DeliveryProbe) -> None:
    raise RuntimeError("it is half dead")


def probing_connection(node: RabbitMQServer, before: str = "") -> str:
    """The name of the connection by which a node is probed, when there is another than before."""
    queue = probe_queue(f"{node.host}:{node.port}").name
    found: set[str] = set()

    def is_there() -> bool:
        consumers = ask(node, "GET", "consumers/%2F")
        known = [one for one in consumers if one["queue"]["name"] == queue]
        found.update(one["channel_details"].get("connection_name", before) for one in known)
        return bool(found - {before})

    wait_until(is_there, WAIT_S, "the connection of a probe")
    return (found - {before}).pop()
