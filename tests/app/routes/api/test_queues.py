"""Queues: declared, described, listed and deleted over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.core.policy.support import put as put_policy
from tests.support.amqp import Client, publish, take_turns

from .support import delete, get, put, refused, tagged

PATH = "/queues/%2F/a%2Fb"


async def test_declared_again_and_deleted(world: World, http: AsyncClient) -> None:
    body: dict[str, Any] = {"durable": "true", "arguments": {"x-max-length": 5}, "node": "other"}
    assert await put(http, PATH, **body) == 201
    assert await put(http, PATH, **body) == 204
    found = await get(http, PATH)
    assert found["durable"] and not found["auto_delete"] and not found["exclusive"]
    assert (found["name"], found["type"], found["arguments"]) == (
        "a/b", "classic", {"x-max-length": 5},
    )  # fmt: skip
    assert await delete(http, PATH) == 204
    assert refused(await http.get("/api" + PATH), 404) == "no queue 'a/b' in vhost '/'"
    assert refused(await http.delete("/api" + PATH), 404) == "no queue 'a/b' in vhost '/'"


async def test_the_virtual_host_has_a_default_type(world: World, http: AsyncClient) -> None:
    assert await put(http, "/vhosts/v", default_queue_type="quorum") == 201
    assert await put(http, "/queues/v/q", durable=True) == 201
    found = await get(http, "/queues/v/q")
    assert found["type"] == "quorum"
    assert found["leader"] == found["node"] and found["members"] == found["online"]


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        (PATH, {"durable": True}, 400, "inequivalent arg 'durable' for queue 'a/b'"),
        (PATH, {"durable": 5}, 400, "key 'durable' has to be true or false, not 5"),
        ("/queues/%2F/n", {"arguments": {"x-max-length": "x"}}, 400, "x-max-length"),
        ("/queues/%2F/n", {"arguments": ["a"]}, 400, "key 'arguments' has to be an object"),
        ("/queues/%2F/amq.n", {}, 400, "reserved prefix 'amq.*'"),
        ("/queues/%2F/" + "n" * 256, {}, 400, "more than 255 bytes"),
        ("/queues/gone/n", {}, 404, "no vhost 'gone'"),
    ],
)
async def test_declarations_that_are_refused(
    http: AsyncClient, path: str, body: dict[str, Any], status: int, reason: str
) -> None:
    await put(http, PATH)
    response = await http.put("/api" + path, json=body)
    assert reason in refused(response, status)


async def test_deleted_only_if_empty_or_unused(world: World, http: AsyncClient) -> None:
    client = Client(world.broker)
    client.declare("full")
    client.publish(b"a", routing_key="full")
    client.declare("used")
    client.consume("used")
    path = "/api/queues/%2F/"
    assert "not empty" in refused(await http.delete(path + "full?if-empty=true"), 400)
    assert "in use" in refused(await http.delete(path + "used?if-unused=true"), 400)
    assert (await http.delete(path + "full?if-unused=true")).status_code == 204
    assert (await http.delete(path + "used?if-empty=true")).status_code == 204


async def test_permissions_are_those_of_amqp(world: World) -> None:
    await world.queue("q")
    async with world.client(auth=tagged(world)) as http:
        for method in ("GET", "PUT", "DELETE"):
            response = await http.request(method, "/api/queues/%2F/q")
            assert "needs the tag 'management'" in refused(response, 403)
    async with world.client(auth=tagged(world, "management")) as http:
        assert await get(http, "/queues") == await get(http, "/queues/%2F")
        assert "configure access" in refused(await http.put("/api/queues/%2F/q", json={}), 403)
        assert "configure access" in refused(await http.delete("/api/queues/%2F/q"), 403)
        assert "refused for user" in refused(await http.get("/api/queues/closed"), 403)


async def test_the_figures_of_a_queue(world: World, http: AsyncClient) -> None:
    client = Client(world.broker)
    client.declare("q", arguments={"x-single-active-consumer": True})
    client.feed(publish(1, b"0123456789", routing_key="q") * 4)
    client.send("Basic.Qos", prefetch_count=2)
    client.consume("q", "first")
    client.consume("q", "second")
    client.send("Basic.Ack", delivery_tag=1)
    found = await get(http, "/queues/%2F/q")
    assert (found["messages"], found["messages_ready"]) == (3, 1)
    assert (found["messages_unacknowledged"], found["consumers"]) == (2, 2)
    assert found["single_active_consumer_tag"] == "first"
    assert found["message_bytes"] >= 3 * 10
    assert "idle_since" not in found
    stats = found["message_stats"]
    assert (stats["publish"], stats["deliver"], stats["deliver_get"], stats["ack"]) == (4, 3, 3, 1)
    first, second = found["consumer_details"]
    assert (first["activity_status"], second["activity_status"]) == ("single_active", "waiting")
    assert first["channel_details"]["name"] == "guest (1)"
    assert (first["prefetch_count"], first["consumer_timeout"]) == (2, 1_800_000)
    assert await get(http, "/consumers/%2F") == [first, second]


async def test_the_rates_of_a_queue(
    world: World, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is moved: a rate is that of the last five seconds."""
    clock, moved_ms = world.broker.clock, 0
    now_ms = clock.now_ms
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms() // 5_000 * 5_000 + moved_ms)
    client = Client(world.broker)
    client.declare("q")
    client.feed(publish(1, b"a", routing_key="q") * 50)
    moved_ms = 5_000
    take_turns(world.broker)
    query = "lengths_age=20&lengths_incr=5&msg_rates_age=20&msg_rates_incr=5"
    found = await get(http, f"/queues/%2F/q?{query}")
    details = found["message_stats"]["publish_details"]
    assert details["rate"] == 10.0
    assert [one["sample"] for one in details["samples"]] == [50, 0]
    assert (details["avg"], details["avg_rate"]) == (25.0, 10.0)
    assert found["messages_details"]["rate"] == 10.0
    assert found["messages_ready_details"]["samples"][0]["sample"] == 50
    (listed,) = await get(http, "/queues?sort=message_stats.publish_details.rate&columns=name")
    assert listed == {"name": "q"}
    moved_ms = 30_000
    found = await get(http, "/queues/%2F/q")
    assert found["message_stats"]["publish_details"] == {"rate": 0.0}
    assert found["idle_since"]
    await world.queue("z")
    rows = await get(http, "/queues?sort=idle_since&columns=name")
    assert [one["name"] for one in rows] == ["z", "q"]


async def test_statistics_can_be_left_out(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    (bare,) = await get(http, "/queues?disable_stats=true")
    (totals,) = await get(http, "/queues?disable_stats=true&enable_queue_totals=true")
    assert "message_stats" not in bare and "messages" not in bare
    assert totals["messages"] == 0 and "message_stats" not in totals
    assert {"name", "vhost", "type", "durable", "auto_delete", "exclusive", "arguments"} <= set(
        bare
    )


async def test_policies_and_owners_are_shown(world: World, http: AsyncClient) -> None:
    put_policy(world.broker, "short", max_length=5)
    client = Client(world.broker)
    client.declare("q", exclusive=True)
    found = await get(http, "/queues/%2F/q")
    assert (found["policy"], found["effective_policy_definition"]) == ("short", {"max-length": 5})
    assert found["exclusive"] and found["owner_pid_details"]["name"] == "guest"
