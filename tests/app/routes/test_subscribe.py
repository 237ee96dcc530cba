"""/subscribe: which requests reach the hub, and how (rabbithub.md 3, http_contract.md 11-13)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.support import problem
from warrenmq.hub.requests import Resource, SubscribeRequest
from warrenmq.hub.subscriptions.options import PARAMETERS

FORM = {
    "hub.mode": "subscribe",
    "hub.callback": "http://s/cb?a=b&c=d#e",
    "hub.topic": "eu.#",
    "hub.verify": "sync",
    "hub.verify_token": "tok",
    "hub.lease_seconds": "600",
    "hub.secret": "sé",
}
NEWS = Resource("/", "x", "news")


def expected(**changes: Any) -> SubscribeRequest:
    values: dict[str, Any] = {
        "source": NEWS,
        "callback": FORM["hub.callback"],
        "topic": "eu.#",
        "user": "guest",
        "base_url": "http://hub",
        "verify": ("sync",),
        "verify_token": "tok",
        "lease_seconds": "600",
        "secret": "sé",
        "is_administrator": True,
        "is_trusted": True,
    }
    return SubscribeRequest(**{**values, **changes})


class TestForms:
    async def test_body(self, world: World, http: AsyncClient) -> None:
        response = await http.post("/subscribe/x/news", data=FORM)
        assert (response.status_code, response.content) == (204, b"")
        assert world.hub.asked == [("subscribe", expected())]

    async def test_json(self, world: World, http: AsyncClient) -> None:
        hub = {name.removeprefix("hub."): value for name, value in FORM.items()}
        hub |= {"lease_seconds": 600, "contact": {"app_name": "a"}, "max_tps": None}  # type: ignore[dict-item]
        response = await http.post("/subscribe/x/news", json={"hub": hub})
        assert response.status_code == 204
        assert world.hub.asked == [("subscribe", expected(given={"hub.app_name": "a"}))]

    @pytest.mark.parametrize("name", PARAMETERS)
    async def test_each_option(self, world: World, http: AsyncClient, name: str) -> None:
        data = {**FORM, name: "a value", "shoe_size": "44"}
        assert (await http.post("/subscribe/x/news", data=data)).status_code == 204
        assert world.hub.asked == [("subscribe", expected(given={name: "a value"}))]

    async def test_empty_is_not_absent(self, world: World, http: AsyncClient) -> None:
        data = {"hub.mode": "subscribe", "hub.topic": "", "hub.callback": "c"}
        await http.post("/subscribe/x/news", data=data)
        ((_, request),) = world.hub.asked
        assert (request.topic, request.secret, request.verify) == ("", None, ())

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"hub.callback=c&hub.topic=t",
            b"hub.mode=%FF",
            b"hub.mode=subscribe&hub.topic=\xff",
            b"&".join(b"a%d=b" % number for number in range(101)),
        ],
    )
    async def test_bad_forms_are_refused(
        self, world: World, http: AsyncClient, body: bytes
    ) -> None:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        problem(await http.post("/subscribe/x/news", content=body, headers=headers), 400)
        assert world.hub.asked == []

    @pytest.mark.parametrize(
        "body",
        [
            "",
            "[]",
            "{}",
            '{"hub": []}',
            '{"hub": {"topic": "t"}}',
            '{"hub": {"mode": "subscribe", "topic": "\\ud800"}}',
            '{"hub": {"mode": "subscribe", "topic": {"a": 1}}}',
            '{"hub": {"mode": "subscribe", "contact": "me"}}',
            '{"hub": {"mode": "subscribe", "contact": {"app_name": {}}}}',
            '{"hub": {"mode": "subscribe", "topic": "t", "contact": {"topic": "u"}}}',
            '{"hub": {"mode": "subscribe", "lease_seconds": ' + "9" * 10_000 + "}}",
        ],
    )
    async def test_bad_json_is_refused(self, world: World, http: AsyncClient, body: str) -> None:
        headers = {"Content-Type": "application/json"}
        problem(await http.post("/subscribe/x/news", content=body, headers=headers), 400)
        assert world.hub.asked == []

    async def test_the_body_is_limited(self, http: AsyncClient) -> None:
        data = {**FORM, "hub.secret": "s" * 270_000}
        problem(await http.post("/subscribe/x/news", data=data), 413)


class TestAnswers:
    async def test_other_vhost_and_base_path(self, world: World) -> None:
        async with world.client(base_path="/base") as http:
            await http.post("/base/other%2Fone/subscribe/q/in", data=FORM)
            await http.post("/rabbithub/subscribe/x/news", data=FORM)
        first, second = (request for _, request in world.hub.asked)
        assert first.source == Resource("other/one", "q", "in")
        assert first.base_url == "http://hub/base"
        assert second.base_url == "http://hub"

    async def test_public_url(self, world: World) -> None:
        async with world.client(public_url="https://hub.example") as http:
            await http.post("/subscribe/x/news", data=FORM)
        assert world.hub.asked == [("subscribe", expected(base_url="https://hub.example"))]


class TestAccess:
    @pytest.mark.parametrize("mode", ["subscribe", "unsubscribe"])
    async def test_write_is_needed_on_the_sink_of_a_shortcut(self, world: World, mode: str) -> None:
        async with world.client(auth=("tony", "secret")) as http:
            data = {**FORM, "hub.mode": mode}
            world.hub.bound = Resource("/", "q", "in")
            refused = await http.post("/subscribe/x/tony.x", data=data)
            assert "write access to queue 'in'" in problem(refused, 403)
            world.hub.bound = Resource("/", "q", "tony.in")
            assert (await http.post("/subscribe/x/tony.x", data=data)).status_code == 204

    async def test_a_user_without_the_tag_subscribes_as_no_administrator(
        self, world: World
    ) -> None:
        async with world.client(auth=("tony", "secret")) as http:
            assert (await http.post("/subscribe/x/tony", data=FORM)).status_code == 204
        ((_, request),) = world.hub.asked
        assert (request.user, request.is_administrator) == ("tony", False)

    @pytest.mark.parametrize("method", ["POST", "DELETE"])
    async def test_permissions_are_checked_again_after_the_body(
        self, world: World, method: str
    ) -> None:
        async def body() -> AsyncIterator[bytes]:
            yield b"hub.mode=subscribe&hub.topic=t&"
            world.users.clear_permissions("tony", "/")
            yield b"hub.callback=http://s/"

        async with world.client(auth=("tony", "secret")) as http:
            problem(await http.request(method, "/subscribe/x/tony", content=body()), 403)
        assert (world.hub.asked, world.hub.removed) == ([], [])

    @pytest.mark.parametrize("method", ["POST", "DELETE"])
    async def test_no_body_is_read_without_permission(self, world: World, method: str) -> None:
        read = False

        async def body() -> AsyncIterator[bytes]:
            nonlocal read
            read = True
            yield b"hub.mode=subscribe"

        async with world.client(auth=("tony", "secret")) as http:
            place = "/closed" if method == "POST" else ""
            path = f"{place}/subscribe/x/news"
            problem(await http.request(method, path, content=body()), 403)
        assert not read
