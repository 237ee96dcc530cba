"""The audit log over HTTP: who has changed what, and who has logged in."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.support.server import WarrenServer
from warrenmq.hub.service import Hub

from .support import delete, get, put, refused, tagged

PATH = "/warren/audit"


@pytest.fixture(autouse=True)
def _real_hub(hub: Hub) -> None:
    """With a database."""


async def entries(http: AsyncClient, query: str = "") -> list[dict[str, Any]]:
    found = (await get(http, PATH + query))["entries"]
    return [{**one, "id": None, "at": None} for one in found]


async def changes(http: AsyncClient) -> list[tuple[Any, Any]]:
    return [(one["before"], one["after"]) for one in await entries(http)]


async def test_a_change_is_recorded_with_user_address_and_path(http: AsyncClient) -> None:
    assert await put(http, "/vhosts/new", tags="a") == 201
    [made] = await entries(http)
    assert await get(http, "/hub/audit") == await get(http, PATH)
    assert made.pop("after")["name"] == "new"
    assert made == {
        "id": None, "at": None, "user": "guest", "token": None, "address": "127.0.0.1",
        "action": "put", "object": "/api/vhosts/new", "status": 201, "before": None,
    }  # fmt: skip


async def test_a_change_is_recorded_with_the_members_that_differ(http: AsyncClient) -> None:
    for write in ("a", "b"):
        await put(http, "/permissions/%2F/tony", configure="", write=write, read="")
    await delete(http, "/permissions/%2F/tony")
    deleted, changed, _ = await changes(http)
    assert changed == ({"write": "a"}, {"write": "b"})
    assert deleted == ({"user": "tony", "vhost": "/", "configure": "", "write": "b", "read": ""},
                       None)  # fmt: skip


async def test_figures_are_left_out(http: AsyncClient) -> None:
    await put(http, "/queues/%2F/in", durable=True)
    [(_, made)] = await changes(http)
    assert made["durable"] is True
    assert not [key for key in made if "message" in key or "_details" in key]


async def test_secrets_are_not_recorded(http: AsyncClient) -> None:
    await put(http, "/users/ann", password="a secret", tags="")
    await put(http, "/users/ann", password="another one", tags="management")
    uri = {"src-uri": "amqp://ann:a%20secret@hub.example/x"}
    await put(http, "/global-parameters/one", value=uri)
    parameter, changed, made = await changes(http)
    assert changed[0] == {"password_hash": "(not shown)", "tags": []}
    assert changed[1] == {"password_hash": "(not shown)", "tags": ["management"]}
    assert made[1]["password_hash"] == "(not shown)"
    assert parameter[1]["value"] == {"src-uri": "amqp://hub.example/..."}


async def test_callbacks_are_cut(world: World, http: AsyncClient) -> None:
    path = "/hub/subscriptions/%2F/exchange/amq.topic/key/https%3A%2F%2Fa.example%2Fhook%2Fsecret"
    assert await delete(http, path) == 404  # nothing was changed
    async with world.client(auth=tagged(world)) as other:
        assert await delete(other, path) == 403
    [one] = await entries(http)
    assert one["object"] == path.replace("hook%2Fsecret", "...").replace("/hub/", "/api/hub/", 1)


async def test_a_change_at_a_path_without_get_is_recorded_as_its_request(http: AsyncClient) -> None:
    await put(http, "/vhost-limits/%2F/max-queues", value=5)
    assert await changes(http) == [(None, {"value": 5})]


async def test_a_refused_change_is_recorded_with_its_status(
    world: World, http: AsyncClient
) -> None:
    async with world.client(auth=tagged(world, "monitoring")) as other:
        refused(await other.put("/api/vhosts/new"), 403)
        refused(await other.get("/api" + PATH), 403)
    [one] = await entries(http)
    assert (one["user"], one["action"], one["status"]) == ("someone", "put", 403)


async def test_logins_and_logouts_are_recorded(world: World, http: AsyncClient) -> None:
    async with world.client(auth=None) as browser:
        login = {"name": "tony", "password": "secret"}
        answer = await browser.post("/api/warren/login", json=login)
        headers = {"Origin": "http://hub", "X-CSRF-Token": answer.json()["csrf_token"]}
        await browser.post("/api/warren/logout", headers=headers)
    found = await entries(http)
    assert [(one["user"], one["action"]) for one in found] == [
        ("tony", "logout"),
        ("tony", "login"),
    ]


async def test_a_wrong_password_on_any_port(warren: WarrenServer) -> None:
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as http:
        http.get("/api/whoami", auth=("mallory", "guess"))
        [one] = http.get("/api" + PATH, params={"action": "login"}).json()["entries"]
        assert (one["user"], one["status"], one["object"]) == ("mallory", 401, None)


async def test_selected_and_in_pages(http: AsyncClient) -> None:
    for name in ("a", "b", "c"):
        await put(http, f"/vhosts/{name}", tags="")
    await delete(http, "/vhosts/a")
    page = await get(http, PATH + "?limit=3")
    rest = await get(http, f"{PATH}?limit=3&before={page['next_before']}")
    assert [one["object"][-1] for one in page["entries"] + rest["entries"]] == ["a", "c", "b", "a"]
    assert rest["next_before"] is None
    assert len(await entries(http, "?action=delete&user=guest&address=127.0.0.1")) == 1
    assert len(await entries(http, "?object=/api/vhosts/a")) == 2
    for query in ("?actor=a", "?action=get", "?limit=0", "?limit=1001", "?before=x"):
        assert refused(await http.get(f"/api{PATH}{query}"), 400)


async def test_messages_are_not_recorded(world: World, http: AsyncClient) -> None:
    await world.queue("in")
    body = {"properties": {}, "routing_key": "in", "payload": "x", "payload_encoding": "string"}
    assert (await http.post("/api/exchanges/%2F/amq.default/publish", json=body)).is_success
    assert await entries(http) == []
