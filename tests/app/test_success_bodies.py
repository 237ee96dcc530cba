"""What is told of a success, and to whom."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World

FORM = {"hub.callback": "http://a.b/c", "hub.topic": "eu.#", "hub.mode": "subscribe"}
JSON = {"Accept": "application/json"}
AXIOS = {"Accept": "application/json, text/plain, */*"}
CURL = {"Accept": "*/*"}


async def test_body_of_a_declare(http: AsyncClient) -> None:
    response = await http.put("/other%2Fone/endpoint/x/a%20b")
    assert response.status_code == 201
    url = "http://hub/other%2Fone/endpoint/x/a%20b"
    assert response.json() == {"type": "exchange", "name": "a b", "vhost": "other/one", "url": url}
    assert response.headers["location"] == url
    again = await http.put("/other%2Fone/endpoint/x/a%20b", headers=JSON)
    assert (again.status_code, again.content) == (204, b"")
    made = (await http.put("/endpoint/q/")).json()
    assert made["type"] == "queue" and made["url"].endswith(made["name"])


@pytest.mark.parametrize(("mode", "status"), [("subscribe", "active"), ("unsubscribe", "ended")])
async def test_a_subscribe_that_was_verified(
    world: World, http: AsyncClient, mode: str, status: str
) -> None:
    await world.exchange("news")
    form = {**FORM, "hub.mode": mode}
    lease: dict[str, Any] = {"lease_seconds": 600} if mode == "subscribe" else {}
    for headers in (JSON, AXIOS):
        response = await http.post("/subscribe/x/news", data=form, headers=headers)
        assert response.status_code == 200
        assert response.json() == {
            "mode": mode, "status": status, "topic": "eu.#", "callback": "http://a.b/c", **lease,
        }  # fmt: skip
    response = await http.post("/subscribe/x/news", data=form, headers=CURL)
    assert (response.status_code, response.content) == (204, b"")  # PubSubHubbub 0.3, 6.1.2


@pytest.mark.parametrize("path", ["/subscribe/x/news", "/hub"])
@pytest.mark.parametrize("headers", [CURL, JSON])
async def test_a_subscribe_that_is_to_be_verified(
    world: World, http: AsyncClient, path: str, headers: dict[str, str]
) -> None:
    await world.exchange("news")
    world.hub.verified = False
    topic = "http://hub/endpoint/x/news" if path == "/hub" else "eu.#"
    response = await http.post(path, data={**FORM, "hub.topic": topic}, headers=headers)
    assert response.status_code == 202
    assert response.json() == {
        "mode": "subscribe", "status": "pending", "topic": topic, "callback": "http://a.b/c",
        "lease_seconds": 600,
    }  # fmt: skip


async def test_body_of_a_publish(world: World, http: AsyncClient) -> None:
    await world.exchange("news")
    await world.queue("in")
    for path, unrouted in (("x/news", 1), ("q/in", 0)):
        for headers in (JSON, AXIOS):
            response = await http.post(f"/endpoint/{path}", content=b"a", headers=headers)
            assert response.status_code == 202
            assert response.json() == {"published": 1, "unrouted": unrouted}
        response = await http.post(f"/endpoint/{path}", content=b"a", headers=CURL)
        assert (response.status_code, response.content) == (202, b"")


async def test_the_default_content_type_of_curl_is_ignored(world: World, http: AsyncClient) -> None:
    await world.queue("in")
    form = "application/x-www-form-urlencoded"
    for query, content_type, expected in (
        ("", form, None),
        ("", f"{form}; charset=utf-8", f"{form}; charset=utf-8"),
        (f"?amqp.content_type={form}", form, form),
    ):
        headers = {"Content-Type": content_type}
        await http.post(f"/endpoint/q/in{query}", content=b"a", headers=headers)
        assert (await world.message("in")).properties.content_type == expected
