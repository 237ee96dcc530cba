"""Paused queues: nothing is delivered until they are resumed, also after a restart."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.support.amqp import Client, take_turns
from tests.support.server import WarrenServer

from .support import get, put, refused, tagged

Q = "/queues/%2F/q"
STREAM = {"x-queue-type": "stream"}


def consuming(world: World, arguments: dict[str, Any]) -> Client:
    """A client that consumes the queue, with two messages that it has not settled at most."""
    client = Client(world.broker)
    client.declare("q", durable=True, arguments=arguments)
    client.send("Basic.Qos", prefetch_count=2)
    client.consume("q", "c")
    return client


@pytest.mark.parametrize("arguments", [{}, STREAM], ids=["classic", "stream"])
async def test_a_paused_queue_delivers_when_it_is_resumed(
    world: World, http: AsyncClient, arguments: dict[str, Any]
) -> None:
    client = consuming(world, arguments)
    assert await put(http, f"{Q}/pause") == await put(http, f"{Q}/pause") == 204
    assert client.publish(b"a", routing_key="q") == []
    found = await get(http, Q)
    assert (found["state"], found["messages_ready"], found["consumers"]) == ("paused", 1, 1)
    assert await put(http, f"{Q}/resume") == await put(http, f"{Q}/resume") == 204
    take_turns(world.broker)
    (delivered,) = client.come()
    assert delivered.body == b"a"
    assert (await get(http, Q))["state"] == "running"


async def test_clients_get_nothing_but_operators_do(world: World, http: AsyncClient) -> None:
    client = Client(world.broker)
    client.declare("q")
    client.publish(b"a", routing_key="q")
    await put(http, f"{Q}/pause")
    assert client.call("Basic.Get", queue="q").name == "Basic.GetEmpty"
    wanted = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
    answer = await http.post(f"/api{Q}/get", json=wanted)
    assert [one["payload"] for one in answer.json()] == ["a"]


async def test_a_message_without_time_expires_before_a_waiting_consumer(
    world: World, http: AsyncClient
) -> None:
    client = consuming(world, {"x-message-ttl": 0})
    await put(http, f"{Q}/pause")
    assert client.publish(b"a", routing_key="q") == []
    assert (await get(http, Q))["messages"] == 0


async def test_pausing_needs_an_existing_queue_and_configure(
    world: World, http: AsyncClient
) -> None:
    assert refused(await http.put(f"/api{Q}/pause"), 404) == "no queue 'q' in vhost '/'"
    await world.queue("q")
    await world.queue("hub.q")
    assert "reserved" in refused(await http.put("/api/queues/%2F/hub.q/pause"), 403)
    async with world.client(auth=tagged(world, "management")) as other:
        assert "configure access" in refused(await other.put(f"/api{Q}/resume"), 403)


def test_after_a_restart() -> None:
    with WarrenServer() as server:
        for restarts in (True, False):
            with httpx.Client(base_url=server.http_url, auth=("guest", "guest")) as http:
                if restarts:
                    for name, arguments in (("q", {}), ("s", STREAM), ("other", {})):
                        body = {"durable": True, "arguments": arguments}
                        http.put(f"/api/queues/%2F/{name}", json=body).raise_for_status()
                        http.post(f"/endpoint/q/{name}", content="a").raise_for_status()
                    for name in ("q", "s"):
                        http.put(f"/api/queues/%2F/{name}/pause").raise_for_status()
                    server.restart()
                    continue
                states = {one["name"]: one["state"] for one in http.get("/api/queues").json()}
                assert states == {"q": "paused", "s": "paused", "other": "running"}
                for name, cursor in (("q", ""), ("s", "&cursor=first")):
                    poll = f"/stream/q/{name}?wait_s=1{cursor}"
                    json = {"accept": "application/json"}
                    assert http.get(poll, headers=json).json()["messages"] == []
                    http.put(f"/api/queues/%2F/{name}/resume").raise_for_status()
                    (found,) = http.get(poll, headers=json).json()["messages"]
                    assert found["body"] == "a"
