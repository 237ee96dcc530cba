"""Users over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World

from .support import delete, get, put, refused

SHA256 = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
"""RabbitMQ's own example: the password is test12."""


async def test_made_changed_and_deleted(world: World, http: AsyncClient) -> None:
    assert await put(http, "/users/ann", password="secret", tags="management, monitoring") == 201
    found = await get(http, "/users/ann")
    assert found.pop("password_hash").startswith("$argon2id$")
    assert found == {
        "name": "ann", "tags": ["management", "monitoring"], "hashing_algorithm": "argon2",
        "limits": {}, "vhosts": [],
    }  # fmt: skip
    async with world.client(auth=("ann", "secret")) as ann:
        assert await get(ann, "/whoami") == {"name": "ann", "tags": ["management", "monitoring"]}
    assert await put(http, "/users/ann", password="other", tags=[]) == 204
    async with world.client(auth=("ann", "secret")) as ann:
        assert refused(await ann.get("/api/whoami"), 401)
    assert (await get(http, "/users/ann"))["tags"] == []
    assert await delete(http, "/users/ann") == 204
    assert refused(await http.get("/api/users/ann"), 404) == "no user 'ann'"
    assert refused(await http.delete("/api/users/ann"), 404) == "no user 'ann'"


async def test_a_hash_of_rabbitmq(world: World, http: AsyncClient) -> None:
    assert await put(http, "/users/ann", password_hash=SHA256, tags="management") == 201
    found = await get(http, "/users/ann")
    assert found["password_hash"] == SHA256
    assert found["hashing_algorithm"] == "rabbit_password_hashing_sha256"
    async with world.client(auth=("ann", "test12")) as ann:
        assert await get(ann, "/whoami")
    assert await put(http, "/users/ann", **found) == 204
    assert await get(http, "/users/ann") == found


@pytest.mark.parametrize("body", [{}, {"password_hash": ""}])
async def test_a_user_without_password_can_not_log_in(
    world: World, http: AsyncClient, body: dict[str, Any]
) -> None:
    await put(http, "/users/ann", password="secret", tags="management")
    assert await put(http, "/users/ann", tags="management", **body) == 204
    assert (await get(http, "/users/ann"))["password_hash"] == ""
    for password in ("secret", ""):
        async with world.client(auth=("ann", password)) as ann:
            assert refused(await ann.get("/api/whoami"), 401)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"password": "x"}, "the body needs the key 'tags'"),
        ({"tags": "", "password": ""}, "an empty password can't be used to log in"),
        ({"tags": "", "password": "x", "password_hash": "y"}, "the body has both password and"),
        ({"tags": "", "password_hash": "zz"}, "a password hash of rabbit_password_hashing_sha256"),
        (
            {"tags": "", "password_hash": SHA256, "hashing_algorithm": "rot13"},
            "hashing algorithm 'rot13' can't be checked",
        ),
        ({"tags": "x" * 2000}, "a user name or tag has 2000 bytes"),
    ],
)
async def test_bad_users_are_refused(http: AsyncClient, body: dict[str, Any], reason: str) -> None:
    assert refused(await http.put("/api/users/ann", json=body), 400).startswith(reason)
    assert refused(await http.get("/api/users/ann"), 404)


async def test_an_administrator_remains(world: World, http: AsyncClient) -> None:
    last = "user 'guest' is the last one with the tag administrator"
    assert last in refused(await http.delete("/api/users/guest"), 409)
    body = {"password": "guest", "tags": "management"}
    assert last in refused(await http.put("/api/users/guest", json=body), 409)
    response = await http.post("/api/users/bulk-delete", json={"users": ["tony", "guest"]})
    assert "administrator would remain" in refused(response, 409)
    assert {user["name"] for user in await get(http, "/users")} == {"guest", "tony"}
    await put(http, "/users/ann", tags="administrator")
    assert await delete(http, "/users/guest") == 204


async def test_several_are_deleted_or_none(world: World, http: AsyncClient) -> None:
    for name in ("a", "b"):
        await put(http, f"/users/{name}", tags="")
    response = await http.post("/api/users/bulk-delete", json={"users": ["a", "nobody"]})
    assert refused(response, 404) == "no user 'nobody'"
    assert world.users.get("a") is not None
    response = await http.post("/api/users/bulk-delete", json={"users": ["a", "b", "a"]})
    assert response.status_code == 204
    assert (world.users.get("a"), world.users.get("b")) == (None, None)
    assert refused(await http.post("/api/users/bulk-delete", json={}), 400)


async def test_users_without_permissions(http: AsyncClient) -> None:
    await put(http, "/users/ann", tags="")
    assert [user["name"] for user in await get(http, "/users/without-permissions")] == ["ann"]


async def test_a_deleted_user_has_no_access(world: World, http: AsyncClient) -> None:
    await put(http, "/users/ann", password="secret", tags="administrator")
    async with world.client(auth=("ann", "secret")) as ann:
        assert await get(ann, "/users")
        await put(http, "/users/ann", password="secret", tags="management")
        assert refused(await ann.get("/api/users"), 403)
        await delete(http, "/users/ann")
        assert refused(await ann.get("/api/whoami"), 401)


async def test_the_hub_forgets_deleted_users(world: World) -> None:
    for name in ("one", "two", "three"):
        world.users.add(name, "secret")
    async with world.client() as http:
        assert (await http.delete("/api/users/one")).status_code == 204
        body = {"users": ["two", "three"]}
        assert (await http.post("/api/users/bulk-delete", json=body)).status_code == 204
        refused(await http.delete("/api/users/one"), 404)
    assert world.hub.forgotten == ["one", "two", "three"]
