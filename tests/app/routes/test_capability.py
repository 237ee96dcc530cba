"""/in/SECRET: publishing and confirming without credentials, with its maker's rights."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import LIMIT, World
from tests.app.support import problem
from warrenmq.core.clock import ManualClock
from warrenmq.hub.capabilities.capabilities import Capabilities
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.owner_rights import AllowAll
from warrenmq.hub.requests import Resource
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.tasks import Tasks

INBOX = Resource("/", "q", "tony.in")
NEWS = Resource("/", "x", "tony.news")


class Desk:
    """Makes capabilities of `tony`, as URLs."""

    def __init__(self, capabilities: Capabilities, clock: ManualClock) -> None:
        self.capabilities = capabilities
        self.clock = clock

    async def make(self, resource: Resource, owner: str = "tony", **given: Any) -> str:
        _, secret = await self.capabilities.make(resource, owner, **given)
        return f"/in/{secret}"


@pytest.fixture
async def desk(world: World, tmp_path: Path) -> AsyncIterator[Desk]:
    """With the queue `tony.in`, which gets all that the exchange `tony.news` does."""
    storage = Storage(tmp_path, None, Sealer(tmp_path / "key"))
    clock = ManualClock()
    capabilities = Capabilities(storage, clock, Tasks(), AllowAll())
    world.hub.capabilities = capabilities  # type: ignore[attr-defined]
    await world.queue("tony.in")
    await world.exchange("tony.news")
    await world.bind("tony.news", "tony.in")
    yield Desk(capabilities, clock)
    await storage.close()


@pytest.fixture
async def stranger(world: World) -> AsyncIterator[AsyncClient]:
    """Without credentials."""
    async with world.client(auth=None, peer="203.0.113.9") as client:
        yield client


class TestPublishing:
    async def test_a_message_is_published_to_a_queue(
        self, world: World, desk: Desk, stranger: AsyncClient
    ) -> None:
        url = await desk.make(INBOX)
        headers = {"Content-Type": "text/plain", "X-Amqp-Type": "t", "X-Hub-Hops": "3"}
        response = await stranger.post(url + "?hub.topic=k", content=b"hello", headers=headers)
        assert (response.status_code, response.content) == (202, b"")
        message = await world.message("tony.in")
        assert (message.body, message.exchange, message.routing_key) == (b"hello", "", "k")
        found = message.properties
        assert (found.content_type, found.type, found.delivery_mode) == ("text/plain", "t", 2)
        assert found.headers == {"x-hub-hops": 4}

    @pytest.mark.parametrize("resource", [INBOX, NEWS])
    async def test_with_a_fixed_key(
        self, world: World, desk: Desk, stranger: AsyncClient, resource: Resource
    ) -> None:
        url = await desk.make(resource, routing_key="eu.fr")
        assert (await stranger.post(url + "?hub.topic=us", content=b"x")).status_code == 202
        assert (await world.message("tony.in")).routing_key == "eu.fr"

    async def test_below_the_prefix(self, world: World, desk: Desk) -> None:
        url = await desk.make(INBOX)
        async with world.client(auth=None, base_path="/base") as http:
            for prefix in ("/base", ""):
                assert (await http.post(prefix + url, content=b"x")).status_code == 202
        assert len(await world.messages("tony.in")) == 2

    async def test_limits_of_endpoint_apply(
        self, world: World, desk: Desk, stranger: AsyncClient
    ) -> None:
        url = await desk.make(INBOX)
        problem(await stranger.post(url, content=b"x" * (LIMIT + 1)), 413)
        problem(await stranger.post(url + "?amqp.priority=x"), 400)
        problem(await stranger.post(url + "?amqp.user_id=guest"), 400)
        problem(await stranger.post(url, headers={"X-Hub-Hops": "20"}), 508)
        assert await world.messages("tony.in") == []

    async def test_a_batch_is_published(
        self, world: World, desk: Desk, stranger: AsyncClient
    ) -> None:
        url = await desk.make(NEWS, routing_key="eu")
        headers = {"Content-Type": "application/x-ndjson"}
        response = await stranger.post(
            url + "?hub.mode=batch", content=b'{"a":1}\n{"a":2}\n', headers=headers
        )
        assert (response.status_code, response.json()["published"]) == (202, 2)
        assert [one.routing_key for one in await world.messages("tony.in")] == ["eu", "eu"]


class TestRights:
    async def test_invalid_urls_are_gone(
        self, world: World, desk: Desk, stranger: AsyncClient
    ) -> None:
        """410 ends a subscription whose callback the URL is (WebSub 7)."""
        expired, revoked = await desk.make(INBOX, expires_in_s=1), await desk.make(INBOX)
        desk.clock.advance(1_000)
        await desk.capabilities.revoke(desk.capabilities.all()[-1])
        for url in (expired, revoked, "/in/unknown", "/in/", "/in/%00"):
            assert "this URL is invalid" in problem(await stranger.post(url, content=b"x"), 410)
            problem(await stranger.get(url + "?hub.mode=subscribe&hub.challenge=c"), 410)
        assert await world.messages("tony.in") == []

    async def test_permissions_of_the_creator_apply(
        self, world: World, desk: Desk, stranger: AsyncClient
    ) -> None:
        url = await desk.make(INBOX)
        question = url + "?hub.mode=subscribe&hub.challenge=c"
        world.users.set_permissions("tony", "/", "", "", ".*")
        assert "write access" in problem(await stranger.post(url, content=b"x"), 403)
        problem(await stranger.get(question), 403)
        world.users.set_permissions("tony", "/", "", ".*", "")
        assert (await stranger.post(url, content=b"x")).status_code == 202
        world.users.remove("tony")
        assert "no longer exists" in problem(await stranger.post(url, content=b"x"), 403)
        problem(await stranger.get(question), 403)
        assert len(await world.messages("tony.in")) == 1

    @pytest.mark.parametrize("key", [None, "eu"])
    async def test_topic_permissions(
        self, world: World, desk: Desk, stranger: AsyncClient, key: str | None
    ) -> None:
        url = await desk.make(NEWS, routing_key=key)
        world.users.set_topic_permission("tony", "/", "tony.news", "^us", "")
        refusal = problem(await stranger.post(url + "?hub.topic=eu", content=b"x"), 403)
        assert "topic 'eu'" in refusal
        world.users.set_topic_permission("tony", "/", "tony.news", "^eu", "")
        allowed = await stranger.post(url + "?hub.topic=eu", content=b"x")
        assert allowed.status_code == 202

    async def test_a_url_that_is_revoked_during_the_body_answers_410(
        self, world: World, desk: Desk, stranger: AsyncClient
    ) -> None:
        url = await desk.make(INBOX)

        async def chunks() -> AsyncIterator[bytes]:
            yield b"x"
            await desk.capabilities.revoke(desk.capabilities.all()[0])
            yield b"y"

        problem(await stranger.post(url, content=chunks()), 410)
        assert await world.messages("tony.in") == []

    async def test_other_methods_are_refused(self, desk: Desk, stranger: AsyncClient) -> None:
        url = await desk.make(INBOX)
        for method in ("PUT", "DELETE", "HEAD", "PATCH"):
            assert (await stranger.request(method, url)).status_code == 405
        problem(await stranger.post("/endpoint/q/tony.in", content=b"x"), 401)


class TestConfirming:
    @pytest.mark.parametrize("mode", ["subscribe", "unsubscribe"])
    async def test_the_challenge_is_confirmed(
        self, desk: Desk, stranger: AsyncClient, mode: str
    ) -> None:
        url = await desk.make(INBOX)
        asked = {"hub.mode": mode, "hub.topic": "eu.#", "hub.challenge": "<b>c</b>"}
        response = await stranger.get(url, params=asked)
        assert (response.status_code, response.text) == (200, "<b>c</b>")
        assert response.headers["content-type"].startswith("text/plain")
        assert response.headers["x-content-type-options"] == "nosniff"

    async def test_a_denial_is_accepted(self, desk: Desk, stranger: AsyncClient) -> None:
        url = await desk.make(INBOX)
        assert (await stranger.get(url + "?hub.mode=denied&hub.topic=t")).status_code == 204

    @pytest.mark.parametrize(
        "query", ["", "?hub.challenge=c", "?hub.mode=subscribe", "?hub.mode=x"]
    )
    async def test_invalid_verifications_are_refused(
        self, desk: Desk, stranger: AsyncClient, query: str
    ) -> None:
        problem(await stranger.get(await desk.make(INBOX) + query), 400)
