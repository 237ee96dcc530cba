"""/hub/callback/TOKEN: content in the name of the upstream's owner, whose rights are asked anew.

What other hubs may ask and send stands in tests/conformance/test_websub_subscriber.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from tests.app.conftest import LIMIT, World
from tests.app.support import problem
from tests.hub.support import until
from tests.support.other_hub import OtherHub
from warrenmq.hub.delivery.signature import sign
from warrenmq.hub.service import Hub
from warrenmq.hub.upstream.upstream import Upstream, UpstreamLeases, UpstreamRequest, UpstreamStatus


@pytest.fixture
def other() -> Iterator[OtherHub]:
    with OtherHub(asks_back=False) as hub:
        hub.page("/topic", hub.links())
        yield hub


class Line:
    """An active upstream of `tony` into the exchange `tony.news`, seen from its hub."""

    def __init__(self, world: World, hub: Hub, http: httpx.AsyncClient) -> None:
        self.world = world
        self.hub = hub
        self.http = http
        self.url = ""
        self.secret = ""

    @property
    def upstream(self) -> Upstream:
        found = self.hub.upstreams.get("/", "feed")
        assert found is not None
        return found

    async def open(self, other: OtherHub, **wish: Any) -> None:
        given = {"kind": "x", "sink": "tony.news", "lease_seconds": 1_000, **wish}
        asked = UpstreamRequest(url=other.url + "/topic", base_url="http://hub", **given)
        await self.hub.upstreams.put("/", "feed", "tony", asked, UpstreamLeases())
        await until(lambda: bool(other.asked), "a request")
        form = other.asked[0].form
        self.url, self.secret = form["hub.callback"], form["hub.secret"]
        question = {"hub.mode": "subscribe", "hub.challenge": "c", "hub.lease_seconds": "1000"}
        asked_back = {**question, "hub.topic": form["hub.topic"]}
        assert (await self.http.get(self.url, params=asked_back)).status_code == 200

    async def post(self, body: bytes = b"x", **headers: str) -> httpx.Response:
        signed = {"X-Hub-Signature": sign("sha512", self.secret, body)}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.post(self.url, content=body, headers={**signed, **named})


@pytest.fixture
async def line(world: World, hub: Hub) -> AsyncIterator[Line]:
    await world.exchange("tony.news")
    await world.queue("in")
    await world.bind("tony.news", "in")
    async with world.client(auth=None, peer="203.0.113.9") as http:
        yield Line(world, hub, http)


async def test_published_with_its_hubs_key(line: Line, other: OtherHub) -> None:
    await line.open(other)
    assert (await line.post(X_AMQP_Routing_Key="eu.fr%C3%BC")).status_code == 202
    assert (await line.post()).status_code == 202
    assert (await line.post(X_AMQP_Routing_Key="x" * 256)).status_code == 202
    keys = [message.routing_key for message in await line.world.messages("in")]
    assert keys == ["eu.frü", "", ""]


async def test_published_with_the_owners_key(line: Line, other: OtherHub) -> None:
    await line.open(other, routing_key="k")
    assert (await line.post(X_AMQP_Routing_Key="eu.fr")).status_code == 202
    assert (await line.world.message("in")).routing_key == "k"


async def test_headers_that_become_properties(line: Line, other: OtherHub) -> None:
    await line.open(other)
    headers = {"Content_Type": "a/b; c=d", "Content_Encoding": "gzip", "X_Hub_Hops": "2"}
    ignored = {"X_Amqp_Type": "t", "X_Amqp_Header_Foo": "bar", "X_Amqp_User_Id": "guest"}
    given = {**headers, **ignored, "webhook_id": "msg_1"}
    assert (await line.post(b"x", **given)).status_code == 202
    found = (await line.world.message("in")).properties
    assert (found.content_type, found.content_encoding) == ("a/b; c=d", "gzip")
    assert (found.message_id, found.delivery_mode) == ("msg_1", 2)
    assert (found.type, found.user_id, found.headers) == (None, None, {"x-hub-hops": 3})
    assert (await line.post(webhook_id="x" * 256)).status_code == 202
    assert (await line.world.message("in")).properties.message_id is None


@pytest.mark.parametrize("size", [0, 1, LIMIT])
async def test_a_long_body_is_checked_off_the_loop(
    line: Line, other: OtherHub, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("warrenmq.app.routes.upstream.MAX_INLINE_HASH_BYTES", 1)
    await line.open(other)
    for _ in range(2):
        assert (await line.post(b"x" * size, webhook_id="msg_1")).status_code == 202
    wrong = {"X-Hub-Signature": sign("sha1", "wrong", b"x" * size)}
    problem(await line.http.post(line.url, content=b"x" * size, headers=wrong), 403)
    assert (await line.world.message("in")).body == b"x" * size


async def test_hub_may_be_the_base_path(line: Line, other: OtherHub) -> None:
    await line.open(other)
    headers = {"X-Hub-Signature": sign("sha1", line.secret, b"x")}
    async with line.world.client(auth=None, base_path="/hub") as http:
        for prefix in ("", "/hub"):
            response = await http.post(
                prefix + line.url.removeprefix("http://hub"), content=b"x", headers=headers
            )
            assert response.status_code == 202


async def test_permissions_are_checked_for_each_delivery(line: Line, other: OtherHub) -> None:
    await line.open(other)
    users = line.world.users
    users.set_permissions("tony", "/", "", "", "")
    assert "write access" in problem(await line.post(), 403)
    assert line.upstream.status is UpstreamStatus.FAILED
    assert "write access to exchange 'tony.news'" in line.upstream.reason
    users.set_permissions("tony", "/", "", ".*", "")
    assert (await line.post()).status_code == 202
    assert (line.upstream.status, line.upstream.reason) == (UpstreamStatus.ACTIVE, "")
    users.set_topic_permission("tony", "/", "tony.news", "^eu", "")
    problem(await line.post(X_AMQP_Routing_Key="us"), 403)
    assert "topic 'us'" in line.upstream.reason
    assert (await line.post(X_AMQP_Routing_Key="eu.fr")).status_code == 202
    users.remove("tony")
    assert "no longer exists" in problem(await line.post(), 403)
    assert line.upstream.status is UpstreamStatus.FAILED
    assert len(await line.world.messages("in")) == 2


async def test_a_deleted_sink_is_reported(line: Line, other: OtherHub) -> None:
    await line.open(other)
    await line.world.engine.delete_exchange("/", "tony.news")
    problem(await line.post(), 404)
    assert "tony.news" in line.upstream.reason


async def test_a_subscription_removed_during_the_body_is_gone(line: Line, other: OtherHub) -> None:
    await line.open(other)

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x"
        await line.hub.upstreams.remove("/", "feed")
        yield b"y"

    headers = {"X-Hub-Signature": sign("sha1", line.secret, b"xy")}
    problem(await line.http.post(line.url, content=chunks(), headers=headers), 410)
    assert await line.world.messages("in") == []


async def test_failed_content_is_not_deduplicated(
    line: Line, other: OtherHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    await line.open(other)
    publish = line.world.engine.publish

    async def fails(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(line.world.engine, "publish", fails)
    problem(await line.post(webhook_id="msg_1"), 500)
    monkeypatch.setattr(line.world.engine, "publish", publish)
    for _ in range(2):
        assert (await line.post(webhook_id="msg_1")).status_code == 202
    assert len(await line.world.messages("in")) == 1
