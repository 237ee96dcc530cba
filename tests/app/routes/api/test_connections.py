"""Connections and channels: listed, described and closed over HTTP."""

from __future__ import annotations

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.support.amqp import Client, names, publish, take_turns
from warrenmq.core.resources.alarms import Bounds, Reading

from .support import delete, get, refused, tagged


@pytest.fixture
def client(world: World) -> Client:
    """A connection of `guest`, called so."""
    client = Client(world.broker)
    client.declare("q")
    return client


@pytest.mark.usefixtures("client")
async def test_a_connection_is_described(world: World, http: AsyncClient) -> None:
    found = await get(http, "/connections/guest")
    assert found["protocol"] == "AMQP 0-9-1"
    assert (found["user"], found["vhost"], found["state"]) == ("guest", "/", "running")
    assert (found["channels"], found["channel_max"], found["frame_max"]) == (1, 2047, 131_072)
    assert found["client_properties"]["capabilities"]["connection.blocked"] is False
    assert found["auth_mechanism"] == "PLAIN"
    assert found["recv_oct"] > 0 and found["recv_cnt"] > 0 and found["send_oct"] > 0
    assert found["recv_oct_details"] == {"rate": 0.0}
    assert [one["name"] for one in await get(http, "/connections")] == ["guest"]
    assert await get(http, "/vhosts/closed/connections") == []
    assert "no connection 'x'" in refused(await http.get("/api/connections/x"), 404)


async def test_addresses_come_from_the_name(world: World, http: AsyncClient) -> None:
    Client(world.broker).connection.name = "192.0.2.1:50000 -> [2001:db8::1]:5672"
    (found,) = await get(http, "/connections")
    assert (found["peer_host"], found["peer_port"]) == ("192.0.2.1", 50_000)
    assert (found["host"], found["port"]) == ("[2001:db8::1]", 5672)


async def test_a_blocked_connection(world: World, http: AsyncClient, client: Client) -> None:
    Client(world.broker, user="tony")
    world.broker.alarms.bounds = Bounds(disk_free=1_000)
    world.broker.alarms.measure(Reading(disk_free_bytes=0))
    client.connection.receive(publish(1, b"a", routing_key="q"))
    take_turns(world.broker)
    assert [one["state"] for one in await get(http, "/connections")] == ["blocked", "blocking"]


@pytest.mark.parametrize(
    ("headers", "reason"),
    [({}, "Closed via management plugin"), ({"X-Reason": "maintenance"}, "maintenance")],
)
async def test_a_connection_is_closed_with_a_reason(
    http: AsyncClient, client: Client, headers: dict[str, str], reason: str
) -> None:
    response = await http.delete("/api/connections/guest", headers=headers)
    assert response.status_code == 204
    take_turns(client.broker)
    (close,) = client.come()
    assert (close.name, close["reply_code"]) == ("Connection.Close", 320)
    assert close["reply_text"] == f"CONNECTION_FORCED - {reason}"
    assert "no connection" in refused(await http.delete("/api/connections/guest"), 404)


async def test_all_connections_of_a_user_are_closed(
    world: World, http: AsyncClient, client: Client
) -> None:
    others = [Client(world.broker, user="tony") for _ in range(2)]
    assert len(await get(http, "/connections/username/tony")) == 2
    assert await delete(http, "/connections/username/tony") == 204
    take_turns(world.broker)
    assert [names(other.come()) for other in others] == [["Connection.Close"]] * 2
    assert [one["user"] for one in await get(http, "/connections")] == ["guest"]


async def test_users_see_and_close_their_own(world: World, client: Client) -> None:
    credentials = tagged(world, "management")
    own = Client(world.broker, user="someone")
    async with world.client(auth=credentials) as http:
        assert [one["user"] for one in await get(http, "/connections")] == ["someone"]
        assert [one["user"] for one in await get(http, "/channels")] == ["someone"]
        refusal = "connection 'guest' is not one of user 'someone'"
        for path in ("/connections/guest", "/connections/guest/channels", "/channels/guest (1)"):
            assert refusal in refused(await http.get("/api" + path), 403)
        assert refusal in refused(await http.delete("/api/connections/guest"), 403)
        assert await delete(http, "/connections/someone") == 204
    take_turns(world.broker)
    assert names(own.come()) == ["Connection.Close"]
    async with world.client(auth=tagged(world, "monitoring", name="watcher")) as http:
        assert [one["user"] for one in await get(http, "/connections")] == ["guest"]
        refusal = refused(await http.delete("/api/connections/guest"), 403)
        assert "needs the tag 'administrator'" in refusal


async def test_a_channel_is_described(http: AsyncClient, client: Client) -> None:
    client.feed(publish(1, b"a", routing_key="q") * 3)
    client.send("Channel.Open", 2)
    client.send("Basic.Qos", prefetch_count=5)
    client.send("Basic.Qos", prefetch_count=7, global_=True)
    client.consume("q", "c")
    client.call("Tx.Select")
    client.publish(b"a", routing_key="q")
    client.send("Basic.Ack", delivery_tag=1)
    first, second = await get(http, "/connections/guest/channels")
    assert (first["name"], second["name"]) == ("guest (1)", "guest (2)")
    assert first["transactional"] and not second["transactional"]
    assert (first["prefetch_count"], first["global_prefetch_count"]) == (5, 7)
    assert (first["messages_uncommitted"], first["acks_uncommitted"]) == (1, 1)
    assert (first["messages_unacknowledged"], first["consumer_count"]) == (2, 1)
    assert first["message_stats"]["publish"] == 3
    whole = await get(http, "/channels/guest (1)")
    assert [one["consumer_tag"] for one in whole["consumer_details"]] == ["c"]
    assert whole.items() >= first.items()
    assert [one["number"] for one in await get(http, "/vhosts/%2F/channels")] == [1, 2]
    for name in ("guest (3)", "guest", "guest (x)"):
        assert refused(await http.get(f"/api/channels/{name}"), 404)


async def test_unconfirmed_publishes_are_shown(http: AsyncClient, client: Client) -> None:
    client.call("Confirm.Select")
    client.publish(b"a", routing_key="q")
    (channel,) = await get(http, "/channels")
    assert channel["confirm"] and channel["messages_unconfirmed"] == 0
    assert channel["message_stats"]["confirm"] == 1
    never = client.broker.store.progress.committed + 10**6
    client.connection.channels[1].published(2, never)
    (channel,) = await get(http, "/channels")
    assert channel["messages_unconfirmed"] == 2


async def test_consumers_of_the_hub_are_listed(world: World, http: AsyncClient) -> None:
    await world.queue("q")

    async def gone() -> None:
        """Never called."""

    consumption = await world.engine.consume(
        "/", "q", prefetch=3, on_delivery=lambda _: None, on_cancel=gone
    )
    (found,) = await get(http, "/consumers")
    assert found["channel_details"]["connection_name"] == "warren"
    assert (found["queue"], found["prefetch_count"]) == ({"name": "q", "vhost": "/"}, 3)
    await consumption.cancel()
    assert await get(http, "/consumers/%2F") == []
