"""What the hub has made for itself, in lists of RabbitMQ's paths; and what needs a look, first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.routes.subscribing import entry
from tests.support.http import Callback
from warrenmq.core.message.model import Properties
from warrenmq.hub.engine.values import ExchangeSpec
from warrenmq.hub.service import Hub

from .support import get, tagged


@pytest.fixture
async def own_queue(hub: Hub, world: World, callback: Callback) -> str:
    """The queue of a subscription of `guest`."""
    wish = replace(entry("amq.topic", "orders.#", kind="x"), callback=callback.url)
    await hub.subscriptions.subscribe(wish)
    (active,) = hub.subscription_store.all()
    return f"hub.sub.{active.subscription.id}"


async def test_own_objects_are_left_out_on_request(
    hub: Hub, own_queue: str, world: World, http: AsyncClient
) -> None:
    await world.queue("orders")
    for path in ("/queues", "/queues/%2F", "/queues/detailed"):
        names = {one["name"] for one in await get(http, f"{path}?columns=name")}
        assert {own_queue, "orders"} <= names
        left = await get(http, f"{path}?columns=name&without_hub=true")
        assert left == [{"name": "orders"}]
    for name in ("news", "hub.feeds", "hub.output.news"):
        await world.engine.declare_exchange("/", ExchangeSpec(name))
    with_hub = {one["name"] for one in await get(http, "/exchanges/%2F")}
    without = {one["name"] for one in await get(http, "/exchanges/%2F?without_hub=true")}
    assert {"amq.topic", "news"} <= without
    assert with_hub - without == {"hub.feeds", "hub.output.news"}


async def test_a_queue_names_its_subscription(
    hub: Hub, callback: Callback, own_queue: str, world: World, http: AsyncClient
) -> None:
    named = {"id": own_queue.removeprefix("hub.sub."), "callback": callback.url}
    await world.queue("orders")
    paths = (f"/queues/%2F/{own_queue}", f"/queues/%2F/{own_queue}/bindings")
    assert (await get(http, paths[0]))["subscription"] == named
    bindings = await get(http, paths[1])
    assert bindings and all(one["subscription"] == named for one in bindings)
    by_name = {one["name"]: one for one in await get(http, "/queues")}
    assert by_name[own_queue]["subscription"] == named
    assert "subscription" not in by_name["orders"]
    async with world.client(auth=tagged(world, "management")) as other:
        assert "subscription" not in await get(other, paths[0])
        assert all("subscription" not in one for one in await get(other, paths[1]))


async def test_queues_can_be_sorted_by_trouble(world: World, http: AsyncClient) -> None:
    """Most messages wait in a stream, which keeps them anyway."""
    await world.queue("a-stream", queue_type="stream")
    for name, number in {"a-stream": 5, "b-stuck": 1, "c-stuck": 2, "d-empty": 0}.items():
        if name != "a-stream":
            await world.queue(name)
        for _ in range(number):
            await world.engine.publish_to("/", (name,), "", Properties(), b"")
    found = await get(http, "/queues/%2F?sort=trouble&sort_reverse=true&page=1")
    names = [one["name"] for one in found["items"]]
    assert names[:2] == ["c-stuck", "b-stuck"]
    assert set(names[2:]) == {"a-stream", "d-empty"}
    world.broker.vhosts["/"].queues["d-empty"].pause()
    for trouble, count in {"no_consumer": 2, "growing": 0, "paused": 1}.items():
        found = await get(http, f"/queues?page=1&trouble={trouble}")
        assert found["total_count"] == count
    assert (await http.get("/api/queues?trouble=lost")).status_code == 400
