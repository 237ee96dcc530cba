"""/api/hub/topics: how topics of others fare, and pings by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.routes.api.support import get, refused, tagged
from tests.hub.support import until
from tests.support.http import Answer, Callback
from tests.support.settings import hub_settings
from warrenmq.core.server.listener import Listener
from warrenmq.hub.engine.port import BindingSpec, ExchangeSpec
from warrenmq.hub.service import Hub
from warrenmq.hub.topics.names import CONTENT

PATH = "/api/hub/topics"


@pytest.fixture(autouse=True)
async def hub(world: World, tmp_path: Path) -> AsyncIterator[Hub]:
    listener = Listener(world.broker)
    await listener.start([])
    hub = Hub(world.engine, hub_settings(allow_loopback=True), tmp_path)
    world.context = replace(world.context, hub=hub)
    await hub.start()
    yield hub
    await hub.stop()
    await listener.stop()


@pytest.fixture
async def http(hub: Hub, world: World) -> AsyncIterator[AsyncClient]:
    async with world.client() as http:
        yield http


async def bind(world: World, url: str) -> None:
    await world.queue("in")
    await world.engine.declare_exchange("/", ExchangeSpec(CONTENT, "direct"))
    await world.engine.bind("/", BindingSpec(CONTENT, "in", routing_key=url))


async def test_a_topic_is_pinged_and_listed(
    world: World, http: AsyncClient, callback: Callback
) -> None:
    assert await get(http, "/hub/topics") == []
    callback.default = Answer(headers={"Content-Type": "text/css"}, body=b"1")
    await bind(world, callback.url)
    response = await http.post(f"{PATH}/ping", json={"url": callback.url, "unknown": 1})
    assert (response.status_code, response.content) == (204, b"")
    listed: list[dict[str, Any]] = []

    async def is_done() -> bool:
        listed[:] = await get(http, "/hub/topics")
        return listed[0]["due_at"] is None

    await until(is_done, "end of the fetch")
    assert (await world.message("in")).body == b"1"
    [topic] = listed
    assert topic.pop("checked_at") == topic.pop("changed_at") > "2026-"
    assert topic == {
        "url": callback.url, "key": callback.url, "subscribers": 1, "content_type": "text/css",
        "due_at": None, "failures": 0, "error": "", "notice": "",
    }  # fmt: skip


async def test_pages(world: World, http: AsyncClient, hub: Hub, callback: Callback) -> None:
    urls = [f"{callback.url}?{number}" for number in range(3)]
    for url in urls:
        await bind(world, url)
    await hub.topics.ping(urls)
    page = await get(http, "/hub/topics?page=2&page_size=2")
    assert [topic["url"] for topic in page.pop("items")] == urls[2:]
    assert page == {
        "page": 2, "page_size": 2, "page_count": 2, "filtered_count": 3, "item_count": 1,
        "total_count": 3,
    }  # fmt: skip
    assert len(await get(http, "/hub/topics")) == 3
    for query in ("page=0", "page=x", "page_size=501", "pgae=1"):
        assert (await http.get(f"{PATH}?{query}")).status_code == 400


async def test_failures_are_listed(world: World, http: AsyncClient, callback: Callback) -> None:
    callback.default = Answer(404)
    await bind(world, callback.url)
    await http.post(f"{PATH}/ping", json={"url": callback.url})

    async def is_told() -> bool:
        [topic] = await get(http, "/hub/topics")
        return bool(topic["failures"] == 1 and topic["due_at"] > topic["checked_at"])

    await until(is_told, "failure")
    [topic] = await get(http, "/hub/topics")
    assert topic["error"] == "its server answered 404" and topic["changed_at"] is None


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({}, 400, "needs the key 'url'"),
        ({"url": "ftp://a/"}, 400, "scheme 'ftp'"),
        ({"url": "http://a.b/"}, 404, "topic 'http://a.b/' has no subscribers"),
    ],
)
async def test_bad_pings_are_refused(
    http: AsyncClient, body: dict[str, str], status: int, reason: str
) -> None:
    assert reason in refused(await http.post(f"{PATH}/ping", json=body), status)


async def test_only_administrators_see_topics(world: World) -> None:
    async with world.client(auth=tagged(world, "management", "monitoring")) as other:
        assert "administrator" in refused(await other.get(PATH), 403)
        assert "administrator" in refused(await other.post(f"{PATH}/ping", json={}), 403)
