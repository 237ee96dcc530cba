"""Permissions and topic permissions over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World

from .support import delete, get, put, refused

OWN = {"user": "tony", "vhost": "other/one", "configure": "^t", "write": "", "read": ".*"}
PATH = "/permissions/other%2Fone/tony"
TOPICS = "/topic-permissions/other%2Fone/tony"


async def test_permissions(world: World, http: AsyncClient) -> None:
    assert refused(await http.get("/api" + PATH), 404)
    assert await put(http, PATH, **OWN) == 201
    assert await put(http, PATH, **OWN) == 204
    assert await get(http, PATH) == OWN
    assert OWN in await get(http, "/permissions")
    assert len(await get(http, "/permissions")) == 4
    assert OWN in await get(http, "/users/tony/permissions")
    assert OWN in await get(http, "/vhosts/other%2Fone/permissions")
    assert await get(http, "/vhosts/closed/permissions") == []
    tony = world.users.existing("tony")
    assert tony.permitted("other/one", "configure", "tea")
    assert not tony.permitted("other/one", "write", "tea")
    assert await delete(http, PATH) == 204
    assert not tony.may_enter("other/one")
    assert refused(await http.delete("/api" + PATH), 404)


async def test_topic_permissions(world: World, http: AsyncClient) -> None:
    assert refused(await http.get("/api" + TOPICS), 404)
    one = {"exchange": "amq.topic", "write": "^{username}", "read": ""}
    two = {"exchange": "news/eu", "write": "", "read": ".*"}
    whose = {"user": "tony", "vhost": "other/one"}
    assert await put(http, TOPICS, **one) == 201
    assert await put(http, TOPICS, **two) == 201
    assert await put(http, TOPICS, **two) == 204
    both = [{**whose, **one}, {**whose, **two}]
    for path in (
        TOPICS, "/topic-permissions", "/users/tony/topic-permissions",
        "/vhosts/other%2Fone/topic-permissions",
    ):  # fmt: skip
        assert await get(http, path) == both
    assert await get(http, "/vhosts/closed/topic-permissions") == []
    assert await get(http, f"{TOPICS}/news%2Feu") == both[1:]
    assert refused(await http.get(f"/api{TOPICS}/other"), 404)
    assert await delete(http, f"{TOPICS}/news%2Feu") == 204
    assert await get(http, TOPICS) == both[:1]
    await put(http, TOPICS, **two)
    assert await delete(http, TOPICS) == 204
    assert world.users.existing("tony").topic_permissions == {}
    assert refused(await http.delete("/api" + TOPICS), 404)


@pytest.mark.parametrize("path", ["/permissions", "/topic-permissions"])
async def test_users_and_vhosts_have_to_be_there(http: AsyncClient, path: str) -> None:
    body = {**OWN, "exchange": "x"}
    for place, reason in (("closed/nobody", "no user 'nobody'"), ("no/tony", "no vhost 'no'")):
        for response in (
            await http.put(f"/api{path}/{place}", json=body),
            await http.get(f"/api{path}/{place}"),
            await http.delete(f"/api{path}/{place}"),
        ):
            assert refused(response, 404) == reason
    assert refused(await http.get("/api/users/nobody" + path), 404) == "no user 'nobody'"
    assert refused(await http.get("/api/vhosts/no" + path), 404) == "no vhost 'no'"


@pytest.mark.parametrize("path", [PATH, TOPICS])
@pytest.mark.parametrize("wrong", ["(", "a" * 65_536, None, 5])
async def test_bad_patterns_are_refused(http: AsyncClient, path: str, wrong: Any) -> None:
    body = {**OWN, "exchange": "x", "read": wrong}
    if wrong is None:
        del body["read"]
    reason = refused(await http.put("/api" + path, json=body), 400)
    assert "pattern" in reason or "'read'" in reason
    assert refused(await http.get("/api" + path), 404)
