"""/subscribe: which requests reach the hub, and how (rabbithub.md 3, http_contract.md 11-13)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.app.conftest import World
from tests.app.support import problem
from warrenmq.hub.errors import CallbackRefused, SourceMissing, VerificationFailed
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
    async def test_body(self, world: World, http: httpx.AsyncClient) -> None:
        response = await http.post("/subscribe/x/news", data=FORM)
        assert (response.status_code, response.content) == (204, b"")
        assert world.hub.asked == [("subscribe", expected())]

    async def test_query(self, world: World, http: httpx.AsyncClient) -> None:
        assert (await http.post("/subscribe/x/news", params=FORM)).status_code == 204
        assert world.hub.asked == [("subscribe", expected())]

    async def test_never_merged(self, world: World, http: httpx.AsyncClient) -> None:
        response = await http.post("/subscribe/x/news?hub.mode=subscribe", data=FORM)
        assert response.status_code == 204
        ((_, request),) = world.hub.asked
        assert (request.callback, request.topic) == (None, None)

    async def test_json(self, world: World, http: httpx.AsyncClient) -> None:
        hub = {name.removeprefix("hub."): value for name, value in FORM.items()}
        hub |= {"lease_seconds": 600, "contact": {"app_name": "a"}, "max_tps": None}  # type: ignore[dict-item]
        response = await http.post("/subscribe/x/news", json={"hub": hub})
        assert response.status_code == 204
        assert world.hub.asked == [("subscribe", expected(given={"hub.app_name": "a"}))]

    @pytest.mark.parametrize("name", PARAMETERS)
    async def test_each_option(self, world: World, http: httpx.AsyncClient, name: str) -> None:
        """As it came: the hub reads it. What is no option of a delivery is not passed on."""
        data = {**FORM, name: "a value", "shoe_size": "44"}
        assert (await http.post("/subscribe/x/news", data=data)).status_code == 204
        assert world.hub.asked == [("subscribe", expected(given={name: "a value"}))]

    @pytest.mark.parametrize(
        "content_type",
        [
            None,
            "application/x-www-form-urlencoded",
            "application/x-www-form-urlencoded; charset=UTF-8",
            "Application/X-WWW-Form-Urlencoded;charset=utf-8",
        ],
    )
    async def test_content_types(
        self, world: World, http: httpx.AsyncClient, content_type: str | None
    ) -> None:
        body = str(httpx.QueryParams(FORM)).encode()
        headers = {} if content_type is None else {"Content-Type": content_type}
        response = await http.post("/subscribe/x/news", content=body, headers=headers)
        assert response.status_code == 204
        assert world.hub.asked == [("subscribe", expected())]

    @pytest.mark.parametrize("content_type", ["text/plain", "multipart/form-data", ""])
    async def test_other_content_types(self, http: httpx.AsyncClient, content_type: str) -> None:
        headers = {"Content-Type": content_type}
        problem(await http.post("/subscribe/x/news", content=b"a=b", headers=headers), 415)

    async def test_encoded_body(self, http: httpx.AsyncClient) -> None:
        headers = {"Content-Encoding": "gzip"}
        problem(await http.post("/subscribe/x/news", data=FORM, headers=headers), 415)

    async def test_repeated_verify(self, world: World, http: httpx.AsyncClient) -> None:
        body = "hub.mode=subscribe&hub.verify=carrier&hub.verify=async,sync&hub.mode=unsubscribe"
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        await http.post("/subscribe/x/news", content=body, headers=headers)
        ((mode, request),) = world.hub.asked
        assert (mode, request.verify) == ("subscribe", ("carrier", "async,sync"))

    async def test_empty_is_not_absent(self, world: World, http: httpx.AsyncClient) -> None:
        data = {"hub.mode": "subscribe", "hub.topic": "", "hub.callback": "c"}
        await http.post("/subscribe/x/news", data=data)
        ((_, request),) = world.hub.asked
        assert (request.topic, request.secret, request.verify) == ("", None, ())

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"hub.callback=c&hub.topic=t",
            b"hub.mode=",
            b"hub.mode=publish",
            b"hub.mode=Subscribe",
            b"hub.mode=%FF",
            b"hub.mode=subscribe&hub.topic=\xff",
            b"&".join(b"a%d=b" % number for number in range(101)),
        ],
    )
    async def test_bad_forms(self, world: World, http: httpx.AsyncClient, body: bytes) -> None:
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
            '{"hub": {"mode": "subscribe", "mode": "subscribe"}}',
            '{"hub": {"mode": "subscribe", "lease_seconds": NaN}}',
            '{"hub": {"mode": "subscribe", "topic": "\\ud800"}}',
            '{"hub": {"mode": "subscribe", "topic": {"a": 1}}}',
            '{"hub": {"mode": "subscribe", "contact": "me"}}',
            '{"hub": {"mode": "subscribe", "contact": {"app_name": {}}}}',
            '{"hub": {"mode": "subscribe", "topic": "t", "contact": {"topic": "u"}}}',
            '{"hub": {"mode": "subscribe", "lease_seconds": ' + "9" * 10_000 + "}}",
            '{"hub": ' + "[" * 1000 + "]" * 1000 + "}",
        ],
    )
    async def test_bad_json(self, world: World, http: httpx.AsyncClient, body: str) -> None:
        headers = {"Content-Type": "application/json"}
        problem(await http.post("/subscribe/x/news", content=body, headers=headers), 400)
        assert world.hub.asked == []

    async def test_bounded(self, http: httpx.AsyncClient) -> None:
        data = {**FORM, "hub.secret": "s" * 270_000}
        problem(await http.post("/subscribe/x/news", data=data), 413)


class TestAnswers:
    async def test_asynchronous(self, world: World, http: httpx.AsyncClient) -> None:
        world.hub.verified = False
        assert (await http.post("/subscribe/q/in", data=FORM)).status_code == 202

    async def test_unsubscribe(self, world: World, http: httpx.AsyncClient) -> None:
        data = {**FORM, "hub.mode": "unsubscribe"}
        assert (await http.post("/subscribe/x/news", data=data)).status_code == 204
        assert world.hub.asked == [("unsubscribe", expected())]

    @pytest.mark.parametrize(
        ("error", "status"),
        [
            (SourceMissing("is not there", field="x", value="news"), 404),
            (CallbackRefused("is a loopback address", field="hub.callback", value="u"), 422),
            (VerificationFailed("answered 404", field="hub.callback"), 400),
        ],
    )
    async def test_refusals_of_the_hub(
        self, world: World, http: httpx.AsyncClient, error: Exception, status: int
    ) -> None:
        world.hub.error = error
        response = await http.post("/subscribe/x/news", data=FORM)
        assert str(error) == problem(response, status)
        assert response.json()["field"] == error.field  # type: ignore[attr-defined]

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


class TestRemove:
    @pytest.mark.parametrize("place", ["params", "data"])
    async def test_both_forms(self, world: World, http: httpx.AsyncClient, place: str) -> None:
        form = {"hub.callback": "http://s/cb", "hub.topic": "t"}
        response = await http.request("DELETE", "/subscribe/x/news", **{place: form})  # type: ignore[arg-type]
        assert response.status_code == 200
        assert response.json() == {"consumers": [{"node": "warren", "status": "removed"}]}
        assert world.hub.removed == [(NEWS, "t", "http://s/cb")]

    async def test_missing_and_unknown(self, http: httpx.AsyncClient) -> None:
        problem(await http.delete("/subscribe/x/news?hub.topic=t"), 400)
        problem(await http.delete("/subscribe/x/news"), 400)
        unknown = "/subscribe/x/news?hub.topic=unknown&hub.callback=c"
        problem(await http.delete(unknown), 404)

    async def test_configure_is_needed(self, world: World) -> None:
        async with world.client(auth=("tony", "secret")) as http:
            refused = await http.delete("/subscribe/x/news?hub.topic=t&hub.callback=c")
            assert "configure access" in problem(refused, 403)


class TestAccess:
    async def test_read_is_needed_to_subscribe(self, world: World) -> None:
        async with world.client(auth=("tony", "secret")) as http:
            refused = await http.post("/subscribe/x/news", data=FORM)
            assert "read access to exchange 'news'" in problem(refused, 403)
            assert (await http.post("/subscribe/x/tony.x", data=FORM)).status_code == 204
            data = {**FORM, "hub.mode": "unsubscribe"}
            assert (await http.post("/subscribe/x/news", data=data)).status_code == 204

    @pytest.mark.parametrize("mode", ["subscribe", "unsubscribe"])
    async def test_write_is_needed_on_what_a_token_binds(self, world: World, mode: str) -> None:
        async with world.client(auth=("tony", "secret")) as http:
            data = {**FORM, "hub.mode": mode}
            world.hub.bound = Resource("/", "q", "in")
            refused = await http.post("/subscribe/x/tony.x", data=data)
            assert "write access to queue 'in'" in problem(refused, 403)
            world.hub.bound = Resource("/", "q", "tony.in")
            assert (await http.post("/subscribe/x/tony.x", data=data)).status_code == 204

    async def test_who_is_no_administrator(self, world: World) -> None:
        """The hub lets only administrators change subscriptions of others."""
        async with world.client(auth=("tony", "secret")) as http:
            assert (await http.post("/subscribe/x/tony", data=FORM)).status_code == 204
        ((_, request),) = world.hub.asked
        assert (request.user, request.is_administrator) == ("tony", False)

    @pytest.mark.parametrize("method", ["POST", "DELETE"])
    async def test_asked_again_after_the_body(self, world: World, method: str) -> None:
        async def body() -> AsyncIterator[bytes]:
            yield b"hub.mode=subscribe&hub.topic=t&"
            world.users.clear_permissions("tony", "/")
            yield b"hub.callback=http://s/"

        async with world.client(auth=("tony", "secret")) as http:
            problem(await http.request(method, "/subscribe/x/tony", content=body()), 403)
        assert (world.hub.asked, world.hub.removed) == ([], [])

    @pytest.mark.parametrize("method", ["POST", "DELETE"])
    async def test_no_body_is_read_before(self, world: World, method: str) -> None:
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

    async def test_credentials_and_vhost(self, world: World, http: httpx.AsyncClient) -> None:
        problem(await http.post("/closed/subscribe/x/news", data=FORM), 403)
        problem(await http.post("/nowhere/subscribe/x/news", data=FORM), 404)
        async with world.client(auth=None) as anonymous:
            problem(await anonymous.post("/subscribe/x/news", data=FORM), 401)


@pytest.mark.parametrize(("method", "query"), [("PUT", ""), ("GET", "?hub.mode=subscribe")])
async def test_invalid_operation(http: httpx.AsyncClient, method: str, query: str) -> None:
    problem(await http.request(method, f"/subscribe/x/amq.topic{query}"), 400)
