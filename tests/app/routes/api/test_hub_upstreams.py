"""/api/hub/upstreams: asked for by name, listed without secrets, ended; rights of the owner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.routes.api.support import delete, get, refused, tagged
from tests.hub.support import until
from tests.support.http import Answer
from tests.support.other_hub import OtherHub
from tests.support.times import seconds
from warrenmq.hub.service import Hub

PATH = "/hub/upstreams/%2F/feed"
SINK = {"type": "q", "name": "in"}


@pytest.fixture
def other() -> Iterator[OtherHub]:
    with OtherHub(asks_back=False) as hub:
        hub.page("/topic", hub.links())
        yield hub


@pytest.fixture
async def client(world: World, hub: Hub) -> Any:
    """On a real hub, with the queue `in`."""
    await world.queue("in")
    async with world.client() as http:
        yield http


async def put(http: AsyncClient, other: OtherHub, **body: Any) -> int:
    given = {"url": other.url + "/topic", "sink": SINK, **body}
    return (await http.put("/api" + PATH, json=given)).status_code


async def test_created_confirmed_listed_and_deleted(client: AsyncClient, other: OtherHub) -> None:
    assert await put(client, other, lease_seconds=1_000, routing_key="k") == 201
    await until(lambda: bool(other.asked), "a request")
    form = other.asked[0].form
    assert form["hub.callback"].startswith("http://hub/hub/callback/")
    found = await get(client, PATH)
    assert found == {
        "vhost": "/", "name": "feed", "owner": "guest", "url": other.url + "/topic", "hub": None,
        "sink": SINK, "routing_key": "k", "lease_seconds": 1_000, "signed": True,
        "status": "pending", "reason": "", "hub_url": other.url + "/hub",
        "self": other.url + "/topic", "expires_at": None, "renew_at": None,
    }  # fmt: skip
    asked = {"hub.mode": "subscribe", "hub.topic": form["hub.topic"], "hub.challenge": "c"}
    response = await client.get(form["hub.callback"], params={**asked, "hub.lease_seconds": "500"})
    assert (response.status_code, response.text) == (200, "c")
    assert response.headers["x-content-type-options"] == "nosniff"
    found = await get(client, PATH)
    assert found["status"] == "active"
    left_s = seconds(found["expires_at"]) - seconds(found["renew_at"])
    assert 0.2 * 500 <= left_s <= 0.3 * 500
    assert await put(client, other, lease_seconds=1_000, routing_key="k") == 204
    assert await get(client, "/hub/upstreams") == await get(client, "/hub/upstreams/%2F") == [found]
    assert await get(client, "/hub/upstreams/other%2Fone") == []
    assert await delete(client, PATH) == 204
    assert await get(client, "/hub/upstreams") == []
    refused(await client.delete("/api" + PATH), 404)
    refused(await client.get("/api" + PATH), 404)


async def test_no_secret_is_shown(
    client: AsyncClient, other: OtherHub, caplog: pytest.LogCaptureFixture
) -> None:
    other.refusal = Answer(500)
    given = {"secret": "s3cr3t-1", "username": "w", "password": "s3cr3t-2"}
    assert await put(client, other, **given) == 201
    await until(lambda: bool(other.asked), "a request")
    form = other.asked[0].form
    assert form["hub.secret"] == "s3cr3t-1"
    assert other.asked[0].headers["authorization"] == "Basic dzpzM2NyM3QtMg=="
    await until(lambda: bool(caplog.records), "a line in the log")
    token = form["hub.callback"].rpartition("/")[2]
    for secret in ("s3cr3t", "dzpz", token):
        assert secret not in (await client.get("/api/hub/upstreams")).text
        assert secret not in caplog.text


async def test_the_public_base(world: World, hub: Hub, other: OtherHub) -> None:
    await world.queue("in")
    async with world.client(public_url="https://pub.example/base", base_path="/base") as http:
        body = {"url": other.url + "/topic", "sink": SINK}
        assert (await http.put("/base/api" + PATH, json=body)).status_code == 201
    await until(lambda: bool(other.asked), "a request")
    callback = other.asked[0].form["hub.callback"]
    assert callback.startswith("https://pub.example/base/hub/callback/")


@pytest.mark.parametrize(
    ("change", "status", "word"),
    [
        ({"url": "ftp://a"}, 422, "url"),
        ({"url": "http://hub/endpoint/x/news"}, 422, "own address"),
        ({"url": 5}, 400, "'url'"),
        ({"url": None}, 400, "'url'"),
        ({"hub": "x"}, 422, "hub"),
        ({"sink": None}, 400, "'sink'"),
        ({"sink": {"type": "z", "name": "in"}}, 400, "'type'"),
        ({"sink": {"type": "q"}}, 400, "'name'"),
        ({"sink": {"type": "q", "name": "missing"}}, 404, "missing"),
        ({"lease_seconds": 0}, 400, "lease_seconds"),
        ({"secret": "x" * 200}, 400, "is 200 bytes long; right: 1 to 199 bytes"),
        ({"secret": 5}, 400, "'secret'"),
        ({"username": "a:b", "password": "x"}, 400, "colon"),
        ({"username": "a"}, 400, "'password'"),
        ({"password": "a"}, 400, "needs the key 'username'"),
        ({"routing_key": "x" * 256}, 400, "routing_key"),
    ],
)
async def test_bad_upstreams_are_refused(
    client: AsyncClient, other: OtherHub, change: dict[str, Any], status: int, word: str
) -> None:
    body = {"url": other.url + "/topic", "sink": SINK, **change}
    response = await client.put("/api" + PATH, json=body)
    assert word in refused(response, status)
    assert await get(client, "/hub/upstreams") == []


class TestRights:
    async def test_write_on_the_sink(
        self, world: World, client: AsyncClient, other: OtherHub
    ) -> None:
        async with world.client(auth=tagged(world, "management")) as http:
            body = {"url": other.url + "/topic", "sink": SINK}
            assert "write access" in refused(await http.put("/api" + PATH, json=body), 403)
        async with world.client(auth=tagged(world, name="plain")) as http:
            assert "'management'" in refused(await http.get("/api/hub/upstreams"), 403)

    async def test_only_the_owner_and_administrators_see_it(
        self, world: World, client: AsyncClient, other: OtherHub
    ) -> None:
        assert await put(client, other) == 201
        credentials = tagged(world, "management")
        world.users.set_permissions("someone", "/", "", ".*", "")
        async with world.client(auth=credentials) as http:
            assert await get(http, "/hub/upstreams") == []
            refused(await http.get("/api" + PATH), 404)
            refused(await http.delete("/api" + PATH), 404)
            body = {"url": other.url + "/topic", "sink": SINK}
            refused(await http.put("/api" + PATH, json=body), 403)
            own = await http.put("/api/hub/upstreams/%2F/mine", json=body)
            assert own.status_code == 201
            assert [one["name"] for one in await get(http, "/hub/upstreams")] == ["mine"]
        assert len(await get(client, "/hub/upstreams")) == 2
