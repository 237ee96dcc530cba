"""Paths that LavinMQ has beside those of RabbitMQ."""

from __future__ import annotations

import json

from httpx import AsyncClient

from tests.app.conftest import World
from tests.support.amqp import Client, take_turns
from tests.support.server import WarrenServer
from warrenmq.core.message.model import Properties

from .support import delete, get, refused, tagged

QUEUE = "/queues/%2F/q"


async def test_unacknowledged_messages_are_listed_one_by_one(
    world: World, http: AsyncClient
) -> None:
    client = Client(world.broker)
    client.declare("q")
    for _ in range(3):
        client.publish(b"a", routing_key="q")
    client.call("Basic.Get", queue="q")
    client.consume("q", "c")
    take_turns(world.broker)
    found = await get(http, f"{QUEUE}/unacked?sort=delivery_tag")
    assert [(one["delivery_tag"], one["consumer_tag"]) for one in found] == [
        (1, "Basic get"), (2, "c"), (3, "c"),
    ]  # fmt: skip
    assert found[0] == {
        "delivery_tag": 1, "consumer_tag": "Basic get", "unacked_for_seconds": 0,
        "channel_name": "guest (1)",
    }  # fmt: skip
    assert (await get(http, f"{QUEUE}/unacked?page=1&page_size=2"))["item_count"] == 2


async def test_a_stream_is_read_from_an_offset(world: World, http: AsyncClient) -> None:
    await world.queue("s", queue_type="stream")
    for number in range(5):
        await world.engine.publish(None, "/", "", "s", Properties(), str(number).encode())

    async def payloads(**body: object) -> list[str]:
        response = await http.post("/api/queues/%2F/s/stream", json=body)
        assert response.status_code == 200, response.text
        return [one["payload"] for one in response.json()]

    assert await payloads() == ["0"]
    assert await payloads(count=2, offset="last") == ["3", "4"]
    assert await payloads(count=9, offset=3) == ["3", "4"]
    assert await payloads(count=9, offset="next") == []
    response = await http.post("/api/queues/%2F/s/stream", json={"offset": "soon"})
    assert "it can be first, last, next or a number" in refused(response, 400)
    await world.queue("q")
    assert "no stream" in refused(await http.post(f"/api{QUEUE}/stream", json={}), 400)


async def test_no_queue_has_to_be_restarted(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    assert "not closed" in refused(await http.put(f"/api{QUEUE}/restart"), 400)
    assert refused(await http.put("/api/queues/%2F/none/restart"), 404)


async def test_a_consumer_is_cancelled_and_told(world: World, http: AsyncClient) -> None:
    client = Client(world.broker)
    client.declare("q")
    client.publish(b"a", routing_key="q")
    client.consume("q", "c")
    take_turns(world.broker)
    client.feed(b"")
    path = "/consumers/%2F/guest/1/c"
    async with world.client(auth=tagged(world, "management")) as other:
        assert refused(await other.delete(f"/api{path}"), 403)
    assert refused(await http.delete("/api/consumers/other%2Fone/guest/1/c"), 404)
    assert await delete(http, path) == 204
    take_turns(world.broker)
    client.feed(b"")
    assert client.replies[-1].name == "Basic.Cancel"
    assert await get(http, "/consumers") == []
    assert (await get(http, QUEUE))["messages_unacknowledged"] == 1
    assert refused(await http.delete(f"/api{path}"), 404)


async def test_definitions_are_uploaded(world: World, http: AsyncClient) -> None:
    world.broker.vhosts["/"].storage.save_vhost()
    files = {"file": ("definitions.json", json.dumps({"queues": [{"name": "q", "vhost": "/"}]}))}
    assert (await http.post("/api/definitions/upload", files=files)).status_code == 204
    assert "q" in world.broker.vhosts["/"].queues


async def test_the_log_in_its_form(warren: WarrenServer) -> None:
    async with AsyncClient(base_url=warren.http_url, auth=("guest", "guest")) as http:
        await http.get("/api/whoami", auth=("nobody", "wrong"))
        file = await http.get("/api/logs")
        assert "[WARNING] app.access.authentication - " in file.text
        assert file.headers["content-disposition"] == "attachment; filename=logs.txt"
        async with http.stream("GET", "/api/livelog?lines=1") as response:
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    break
    level, area, message = json.loads(line.removeprefix("data: "))
    assert (level, area) == ("warning", "app.access.authentication") and "'nobody'" in message
