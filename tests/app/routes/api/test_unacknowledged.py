"""Who holds unacknowledged messages of a queue, and how old the oldest ready one is."""

from __future__ import annotations

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.support.amqp import Client, take_turns

from .support import get, refused

HOLDERS = "/warren/queues/%2F/q/unacknowledged"
CHECK_MS = 10_000


async def test_consumers_and_channels_that_got_messages_are_listed(
    world: World, http: AsyncClient
) -> None:
    client = Client(world.broker)
    client.declare("q")
    client.declare("other")
    assert await get(http, HOLDERS) == []
    for _ in range(5):
        client.publish(b"a", routing_key="q")
    client.publish(b"b", routing_key="other")
    assert client.call("Basic.Get", queue="other").name == "Basic.GetOk"
    client.call("Basic.Get", queue="q")
    client.send("Basic.Qos", prefetch_count=3)
    client.consume("q", "c")
    take_turns(world.broker)
    here = {"channel": "guest (1)", "connection": "guest", "user": "guest", "since": None}
    by_get, consumer = await get(http, HOLDERS)
    assert by_get == {"consumer_tag": None, "messages": 1, **here}
    assert consumer == {"consumer_tag": "c", "messages": 3, **here}
    assert (await get(http, f"{HOLDERS}?page=1&name=c"))["filtered_count"] == 1
    assert "no queue 'none'" in refused(
        await http.get("/api/warren/queues/%2F/none/unacknowledged"), 404
    )


async def test_ages_grow_with_time(
    world: World, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, moved_ms = world.broker.clock, 0
    now_ms = clock.now_ms
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms() + moved_ms)
    client = Client(world.broker)
    client.declare("q")
    assert (await get(http, "/queues/%2F/q"))["oldest_message_age_s"] is None
    client.publish(b"a", routing_key="q")
    client.publish(b"b", routing_key="q")
    client.call("Basic.Get", queue="q")
    for _ in range(3):
        moved_ms += CHECK_MS
        take_turns(world.broker)
    assert (await get(http, "/queues/%2F/q"))["oldest_message_age_s"] >= 30
    client.declare("empty")
    listed = await get(http, "/queues?sort=oldest_message_age_s&sort_reverse=true")
    assert [one["name"] for one in listed] == ["q", "empty"]
    assert listed[0]["oldest_message_age_s"] >= 30
    (holder,) = await get(http, HOLDERS)
    assert holder["since"] is not None
