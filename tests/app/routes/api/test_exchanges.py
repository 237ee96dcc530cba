"""Exchanges and the bindings of exchanges and queues, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.support.amqp import Client

from .support import delete, get, put, refused, tagged

PATH = "/exchanges/%2F/x"


async def test_declared_again_and_deleted(http: AsyncClient) -> None:
    body: dict[str, Any] = {"type": "topic", "durable": False, "arguments": {"a": 1}}
    assert await put(http, PATH, **body) == 201
    assert await put(http, PATH, **body) == 204
    found = await get(http, PATH)
    assert (found["type"], found["durable"], found["internal"]) == ("topic", False, False)
    assert found["arguments"] == {"a": 1}
    assert await delete(http, PATH) == 204
    assert refused(await http.get("/api" + PATH), 404) == "no exchange 'x' in vhost '/'"
    assert refused(await http.delete("/api" + PATH), 404)


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        (PATH, {"type": "direct"}, 400, "inequivalent arg 'type' for exchange 'x'"),
        ("/exchanges/%2F/n", {"type": "none"}, 400, "unknown exchange type 'none'"),
        ("/exchanges/%2F/amq.n", {"type": "topic"}, 400, "reserved prefix 'amq.*'"),
        ("/exchanges/%2F/amq.default", {"type": "direct"}, 403, "the default exchange"),
        ("/exchanges/gone/n", {"type": "topic"}, 404, "no vhost 'gone'"),
    ],
)
async def test_declarations_that_are_refused(
    http: AsyncClient, path: str, body: dict[str, Any], status: int, reason: str
) -> None:
    await put(http, PATH, type="topic")
    assert reason in refused(await http.put("/api" + path, json=body), status)


async def test_deleted_only_if_unused(world: World, http: AsyncClient) -> None:
    await world.exchange("x")
    await world.queue("q")
    await world.bind("x", "q")
    assert "in use" in refused(await http.delete(f"/api{PATH}?if-unused=true"), 400)
    assert "system exchange" in refused(await http.delete("/api/exchanges/%2F/amq.topic"), 403)
    assert await delete(http, PATH) == 204


async def test_permissions_are_those_of_amqp(world: World) -> None:
    await world.exchange("x")
    async with world.client(auth=tagged(world, "management")) as http:
        response = await http.put("/api" + PATH, json={"type": "topic"})
        assert "configure access" in refused(response, 403)
        assert "configure access" in refused(await http.delete("/api" + PATH), 403)


async def test_the_default_exchange_is_listed_first(world: World, http: AsyncClient) -> None:
    client = Client(world.broker)
    client.declare("q")
    client.publish(b"a", routing_key="q")
    client.publish(b"a", exchange="amq.fanout")
    default, *others = await get(http, "/exchanges/%2F")
    assert (default["name"], default["type"], default["durable"]) == ("", "direct", True)
    stats = default["message_stats"]
    assert (stats["publish_in"], stats["publish_out"]) == (1, 1)
    fanout = next(one for one in others if one["name"] == "amq.fanout")
    assert fanout["message_stats"]["publish_in"] == 1
    assert fanout["message_stats"]["publish_out"] == 0
    assert (await get(http, "/exchanges/%2F/amq.default"))["name"] == ""


async def test_bindings_of_both_ends(world: World, http: AsyncClient) -> None:
    await world.exchange("x")
    await world.exchange("y")
    await world.queue("q")
    to_queue, to_exchange = "/bindings/%2F/e/x/q/q", "/bindings/%2F/e/x/e/y"
    for path in (to_queue, to_exchange):
        response = await http.post("/api" + path, json={"routing_key": "a.b/c", "arguments": {}})
        assert (response.status_code, response.headers["location"]) == (
            201,
            f"{path[-1]}/a.b%252Fc",
        )
    (one,) = await get(http, to_queue)
    (other,) = await get(http, to_exchange)
    assert (other["destination"], other["destination_type"]) == ("y", "exchange")
    default = {"source": "", "destination": "q", "routing_key": "q", "properties_key": "q"}
    first, second = await get(http, "/queues/%2F/q/bindings")
    assert first.items() >= default.items() and second == one
    assert await get(http, PATH + "/bindings/source") == [one, other]
    assert await get(http, "/exchanges/%2F/y/bindings/destination") == [other]
    assert await get(http, "/exchanges/%2F/amq.default/bindings/source") == [first]
    assert await get(http, "/exchanges/%2F/amq.default/bindings/destination") == []
    assert await get(http, "/bindings") == [first, one, other]


async def test_a_binding_by_its_key(world: World, http: AsyncClient) -> None:
    await world.exchange("x")
    await world.queue("q")
    path = "/bindings/%2F/e/x/q/q"
    for body in ({"routing_key": "a/b"}, {"arguments": {"n": 1}}, {}):
        location = (await http.post("/api" + path, json=body)).headers["location"][2:]
        found = await get(http, f"{path}/{location}")
        assert found["routing_key"] == body.get("routing_key", "")
        assert await delete(http, f"{path}/{location}") == 204
        assert "no binding" in refused(await http.get(f"/api{path}/{location}"), 404)
    assert "no binding" in refused(await http.delete(f"/api{path}/~"), 404)
    (default,) = await get(http, "/bindings/%2F/e/amq.default/q/q")
    assert default["routing_key"] == "q"
    assert "default exchange" in refused(
        await http.delete("/api/bindings/%2F/e/amq.default/q/q/q"), 403
    )
