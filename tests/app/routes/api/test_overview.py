"""The server as a whole over HTTP: totals, rates, its name, what clients ask first."""

from __future__ import annotations

from dataclasses import replace

from httpx import AsyncClient

from tests.app.conftest import World
from tests.support.amqp import MemoryTransport, take_turns
from warrenmq.app.node import Listening, Node
from warrenmq.core.message.model import Properties
from warrenmq.core.proto.connection import Connection
from warrenmq.core.wire.frames import PROTOCOL_HEADER
from warrenmq.hub.service import Hub

from .support import delete, get, put, refused, tagged


async def publish(world: World, count: int, vhost: str = "/", queue: str = "q") -> None:
    for _ in range(count):
        await world.engine.publish(None, vhost, "", queue, Properties(), b"x")


def later(world: World, by_s: float) -> None:
    """As if so much time had passed."""
    clock = world.broker.clock
    before = clock.now_ms
    clock.now_ms = lambda: before() + int(by_s * 1000)  # type: ignore[method-assign]
    world.broker.tick()
    while world.broker.turn():
        pass


async def test_totals(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    await world.queue("r", "other/one")
    await publish(world, 3)
    await publish(world, 2, "other/one", "r")
    await http.post("/api/queues/%2F/q/get", json={"count": 1, "ackmode": "ack_requeue_false"})
    found = await get(http, "/overview")
    assert found["queue_totals"]["messages"] == found["queue_totals"]["messages_ready"] == 4
    assert found["queue_totals"]["messages_unacknowledged"] == 0
    assert found["object_totals"] == {
        "channels": 0, "connections": 0, "consumers": 0, "exchanges": 21, "queues": 2,
    }  # fmt: skip
    stats = found["message_stats"]
    assert (stats["publish"], stats["get_no_ack"], stats["deliver_get"]) == (5, 1, 1)
    assert found["rabbitmq_version"].startswith("3.13")
    assert found["node"] == world.context.node.name


async def test_rates_and_samples(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    await get(http, "/overview")
    await publish(world, 10)
    later(world, 10)
    await get(http, "/overview")
    later(world, 1)
    path = "/overview?msg_rates_age=60&msg_rates_incr=1"
    found = await get(http, path)
    assert found["message_stats"]["publish_details"]["rate"] > 0
    assert 0 < found["queue_totals"]["messages_details"]["rate"] <= 1
    samples = found["message_stats"]["publish_details"]["samples"]
    assert samples[0]["sample"] == 10
    assert samples[0]["timestamp"] > 1_600_000_000_000
    assert (
        "samples"
        not in (await get(http, "/overview?msg_rates_age=60"))["message_stats"]["publish_details"]
    )
    response = await http.get("/api/overview?msg_rates_age=60&msg_rates_incr=0")
    assert "msg_rates_incr is '0', it has to be 1 to 86400" in refused(response, 400)


async def test_totals_are_of_the_virtual_hosts_that_the_user_sees(world: World) -> None:
    await world.queue("r", "closed")
    async with world.client(auth=tagged(world, "management")) as http:
        found = await get(http, "/overview")
        assert found["object_totals"]["queues"] == 0
        assert found["message_stats"] == {}
        assert found["listeners"] == []
    async with world.client(auth=tagged(world, "monitoring")) as http:
        assert (await get(http, "/overview"))["object_totals"]["queues"] == 1


async def test_listeners_are_listed(world: World) -> None:
    node = Node(
        "warren@here", listeners=[Listening("amqp", "::1", 5672), Listening("http", "::1", 80)]
    )
    world.context = replace(world.context, node=node)
    async with world.client() as http:
        found = await get(http, "/overview")
        assert [(one["protocol"], one["port"]) for one in found["listeners"]] == [
            ("amqp", 5672), ("http", 80),
        ]  # fmt: skip
        assert [one["port"] for one in found["contexts"]] == ["80"]


async def test_the_name_of_the_cluster(hub: Hub, world: World, http: AsyncClient) -> None:
    assert (await get(http, "/cluster-name"))["name"] == world.context.node.name
    assert await put(http, "/cluster-name", name="ours") == 204
    assert (await get(http, "/cluster-name"))["name"] == "ours"
    assert (await get(http, "/overview"))["cluster_name"] == "ours"
    assert 'rabbitmq_cluster="ours"' in (await http.get("/metrics")).text
    transport = MemoryTransport()
    Connection(world.broker, transport).receive(PROTOCOL_HEADER)
    take_turns(world.broker)
    assert b"cluster_nameS\0\0\0\x04ours" in transport.taken()
    assert await get(http, "/global-parameters/cluster_name") == {
        "name": "cluster_name", "value": "ours",
    }  # fmt: skip
    assert "'name'" in refused(await http.put("/api/cluster-name", json={}), 400)


async def test_auth_extensions_and_version_are_answered(world: World, http: AsyncClient) -> None:
    async with world.client(auth=None) as anonymous:
        assert (await get(anonymous, "/auth"))["oauth_enabled"] is False
    assert await get(http, "/extensions") == []
    assert (await get(http, "/version"))["version"].startswith("3.13")


# -- the node


async def test_the_node_is_described(world: World, http: AsyncClient) -> None:
    name = world.context.node.name
    (found,) = await get(http, "/nodes")
    assert (found["name"], found["running"], found["being_drained"]) == (name, True, False)
    assert not any("shovel" in plugin for plugin in found["enabled_plugins"])
    assert found["disk_free"] > 0
    assert found["mem_used"] > 0
    assert 0 < found["fd_used"] <= found["fd_total"]
    memory = await get(http, f"/nodes/{name}/memory")
    assert memory["memory"]["total"]["rss"] > 0
    assert (await get(http, f"/nodes/{name}?memory=true")).keys() == {*found, "memory"}
    assert name in refused(await http.get("/api/nodes/other"), 404)
    assert refused(await http.get("/api/nodes/other/memory"), 404)


# -- clusters, plugins, features


async def test_features_are_enabled(http: AsyncClient) -> None:
    found = await get(http, "/feature-flags")
    assert {one["state"] for one in found} == {"enabled"}
    assert await put(http, f"/feature-flags/{found[0]['name']}/enable") == 204
    assert "quorum_queue" in refused(await http.put("/api/feature-flags/warp/enable"), 404)
    assert (
        await get(http, "/deprecated-features")
        == await get(http, "/deprecated-features/used")
        == []
    )


async def test_neither_shovels_nor_links_run(http: AsyncClient) -> None:
    for path in ("/shovels", "/shovels/%2F", "/federation-links", "/federation-links/%2F"):
        assert await get(http, path) == []
        assert refused(await http.get(f"/api{path}/none"), 404)


async def test_samples_are_dropped_by_a_reset(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    await publish(world, 10)
    later(world, 10)
    assert await delete(http, "/reset") == 204
    found = await get(http, "/overview?msg_rates_age=60&msg_rates_incr=5")
    assert found["message_stats"]["publish_details"]["samples"] == []
    assert found["message_stats"]["publish"] == 10
    assert await delete(http, f"/reset/{world.context.node.name}") == 204
    assert await delete(http, "/reset/other") == 404
    assert (await http.post("/api/rebalance/queues")).status_code == 204


async def test_logins_are_counted(world: World, http: AsyncClient) -> None:
    world.broker.statistics.churned().login_failed += 2
    world.broker.statistics.churned().login_succeeded += 3
    assert await get(http, f"/auth/attempts/{world.context.node.name}") == [
        {
            "protocol": "amqp091", "auth_attempts": 5, "auth_attempts_succeeded": 3,
            "auth_attempts_failed": 2,
        }
    ]  # fmt: skip
    assert refused(await http.get("/api/auth/attempts/other"), 404)


async def test_hashed_passwords_log_in(world: World, http: AsyncClient) -> None:
    first = (await get(http, "/auth/hash_password/test12"))["ok"]
    second = (await http.put("/api/auth/hash_password", json={"password": "test12"})).json()["ok"]
    assert first != second
    for number, found in enumerate((first, second)):
        await put(http, f"/users/u{number}", tags="management", password_hash=found)
        async with world.client(auth=(f"u{number}", "test12")) as other:
            assert (await get(other, "/whoami"))["name"] == f"u{number}"
    assert "empty" in refused(await http.put("/api/auth/hash_password", json={"password": ""}), 400)
