"""Every path with every method and every tag; and the forms of refusals."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.app.conftest import World
from warrenmq.app.routes.api.router import TABLES

from .support import get, refused, tagged

TAGS = ("", "impersonator", "management", "policymaker", "monitoring", "administrator")
ALL = frozenset({"management", "policymaker", "monitoring", "administrator"})
POLICIES = frozenset({"policymaker", "administrator"})
MONITORING = frozenset({"monitoring", "administrator"})
ADMINISTRATOR = frozenset({"administrator"})

PATTERNS: dict[str, Any] = {"configure": "", "write": "", "read": ""}
POLICY: dict[str, Any] = {"pattern": "", "definition": {"max-length": 1}}
TOPIC: dict[str, Any] = {"exchange": "x", "write": "", "read": ""}

# Path, path as it is asked, method, body, who may, status for those.
CALLS: list[tuple[str, str, str, Any, frozenset[str], int]] = [
    ("/whoami", "/whoami", "GET", None, ALL, 200),
    ("/vhosts", "/vhosts", "GET", None, ALL, 200),
    ("/vhosts/{vhost}", "/vhosts/%2F", "GET", None, ALL, 200),
    ("/vhosts/{vhost}", "/vhosts/new", "PUT", {}, ADMINISTRATOR, 201),
    ("/vhosts/{vhost}", "/vhosts/closed", "DELETE", None, ADMINISTRATOR, 204),
    (
        "/vhosts/{vhost}/deletion/protection", "/vhosts/closed/deletion/protection", "POST", None,
        ADMINISTRATOR, 204,
    ),
    (
        "/vhosts/{vhost}/deletion/protection", "/vhosts/closed/deletion/protection", "DELETE", None,
        ADMINISTRATOR, 204,
    ),
    ("/vhosts/{vhost}/permissions", "/vhosts/%2F/permissions", "GET", None, ADMINISTRATOR, 200),
    (
        "/vhosts/{vhost}/topic-permissions", "/vhosts/%2F/topic-permissions", "GET", None,
        ADMINISTRATOR, 200,
    ),
    ("/users", "/users", "GET", None, ADMINISTRATOR, 200),
    ("/users/without-permissions", "/users/without-permissions", "GET", None, ADMINISTRATOR, 200),
    ("/users/bulk-delete", "/users/bulk-delete", "POST", {"users": []}, ADMINISTRATOR, 204),
    ("/users/{user}", "/users/tony", "GET", None, ADMINISTRATOR, 200),
    ("/users/{user}", "/users/new", "PUT", {"tags": ""}, ADMINISTRATOR, 201),
    ("/users/{user}", "/users/tony", "DELETE", None, ADMINISTRATOR, 204),
    ("/users/{user}/permissions", "/users/tony/permissions", "GET", None, ADMINISTRATOR, 200),
    (
        "/users/{user}/topic-permissions", "/users/tony/topic-permissions", "GET", None,
        ADMINISTRATOR, 200,
    ),
    ("/permissions", "/permissions", "GET", None, ADMINISTRATOR, 200),
    ("/permissions/{vhost}/{user}", "/permissions/%2F/tony", "GET", None, ADMINISTRATOR, 200),
    (
        "/permissions/{vhost}/{user}", "/permissions/closed/tony", "PUT", PATTERNS,
        ADMINISTRATOR, 201,
    ),
    ("/permissions/{vhost}/{user}", "/permissions/%2F/tony", "DELETE", None, ADMINISTRATOR, 204),
    ("/topic-permissions", "/topic-permissions", "GET", None, ADMINISTRATOR, 200),
    (
        "/topic-permissions/{vhost}/{user}", "/topic-permissions/%2F/tony", "GET", None,
        ADMINISTRATOR, 200,
    ),
    (
        "/topic-permissions/{vhost}/{user}", "/topic-permissions/%2F/tony", "PUT", TOPIC,
        ADMINISTRATOR, 201,
    ),
    (
        "/topic-permissions/{vhost}/{user}", "/topic-permissions/%2F/tony", "DELETE", None,
        ADMINISTRATOR, 204,
    ),
    (
        "/topic-permissions/{vhost}/{user}/{exchange}",
        "/topic-permissions/%2F/tony/amq.topic", "GET", None,
        ADMINISTRATOR, 200,
    ),
    (
        "/topic-permissions/{vhost}/{user}/{exchange}",
        "/topic-permissions/%2F/tony/amq.topic", "DELETE", None,
        ADMINISTRATOR, 204,
    ),
    ("/policies", "/policies", "GET", None, POLICIES, 200),
    ("/policies/{vhost}", "/policies/%2F", "GET", None, POLICIES, 200),
    ("/policies/{vhost}/{policy}", "/policies/%2F/old", "GET", None, POLICIES, 200),
    ("/policies/{vhost}/{policy}", "/policies/%2F/new", "PUT", POLICY, POLICIES, 201),
    ("/policies/{vhost}/{policy}", "/policies/%2F/old", "DELETE", None, POLICIES, 204),
    ("/operator-policies", "/operator-policies", "GET", None, POLICIES, 200),
    ("/operator-policies/{vhost}", "/operator-policies/%2F", "GET", None, POLICIES, 200),
    (
        "/operator-policies/{vhost}/{policy}", "/operator-policies/%2F/old", "GET", None,
        POLICIES, 200,
    ),
    (
        "/operator-policies/{vhost}/{policy}", "/operator-policies/%2F/new", "PUT", POLICY,
        ADMINISTRATOR, 201,
    ),
    (
        "/operator-policies/{vhost}/{policy}", "/operator-policies/%2F/old", "DELETE", None,
        ADMINISTRATOR, 204,
    ),
    ("/vhost-limits", "/vhost-limits", "GET", None, ALL, 200),
    ("/vhost-limits/{vhost}", "/vhost-limits/%2F", "GET", None, ALL, 200),
    (
        "/vhost-limits/{vhost}/{limit}", "/vhost-limits/%2F/max-queues", "PUT", {"value": 5},
        ADMINISTRATOR, 201,
    ),
    (
        "/vhost-limits/{vhost}/{limit}", "/vhost-limits/%2F/max-queues", "DELETE", None,
        ADMINISTRATOR, 204,
    ),
    ("/user-limits", "/user-limits", "GET", None, ALL, 200),
    ("/user-limits/{user}", "/user-limits/someone", "GET", None, ALL, 200),
    (
        "/user-limits/{user}/{limit}", "/user-limits/tony/max-channels", "PUT", {"value": 5},
        ADMINISTRATOR, 201,
    ),
    (
        "/user-limits/{user}/{limit}", "/user-limits/tony/max-channels", "DELETE", None,
        ADMINISTRATOR, 204,
    ),
    ("/warren/quarantine", "/warren/quarantine", "GET", None, ADMINISTRATOR, 200),
    ("/health/checks/storage", "/health/checks/storage", "GET", None, MONITORING, 200),
]  # fmt: skip


def prepare(world: World) -> None:
    """What the calls get and delete."""
    from tests.core.policy.support import put

    world.users.set_topic_permission("tony", "/", "amq.topic", "", "")
    put(world.broker, "old", max_length=5)
    put(world.broker, "old", operator=True, max_length=5)


@pytest.mark.parametrize(("call", "tag"), [(call, tag) for call in CALLS for tag in TAGS])
async def test_who_may(
    world: World, call: tuple[str, str, str, Any, frozenset[str], int], tag: str
) -> None:
    _, path, method, body, may, status = call
    prepare(world)
    credentials = tagged(world, *([tag] if tag else []))
    content = {} if body is None else {"json": body}
    async with world.client(auth=credentials) as http:
        response = await http.request(method, "/api" + path, **content)
    if tag in may:
        assert response.status_code == status, response.text
        assert bool(response.content) == (status == 200)
    else:
        assert "user 'someone' needs the tag '" in refused(response, 403)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[2]} {call[0]}")
async def test_nobody_without_credentials(world: World, call: tuple[Any, ...]) -> None:
    async with world.client(auth=None) as http:
        response = await http.request(call[2], "/api" + call[1])
    assert "credentials" in refused(response, 401)
    assert response.headers["www-authenticate"].startswith("Basic ")


def test_every_route_is_among_these() -> None:
    """Those of the hub have owners beside tags, and are tried in files of their own."""
    built = {(path, method) for table in TABLES for path in table for method in table[path]}
    of_hub = {(path, method) for path, method in built if path.startswith("/hub/")}
    assert built - of_hub == {(call[0], call[2]) for call in CALLS}


@pytest.mark.parametrize("auth", [None, ("guest", "wrong")])
@pytest.mark.parametrize(("method", "path"), [("GET", "/nothing"), ("POST", "/vhosts/x")])
async def test_who_asks_comes_before_what_is_there(
    world: World, auth: tuple[str, str] | None, method: str, path: str
) -> None:
    async with world.client(auth=auth) as http:
        response = await http.request(method, "/api" + path)
    refused(response, 401)
    assert response.headers["www-authenticate"].startswith("Basic ")


async def test_a_wrong_password(world: World) -> None:
    async with world.client(auth=("guest", "wrong")) as http:
        assert refused(await http.get("/api/whoami"), 401) == "wrong user or password"
        for _ in range(5):
            response = await http.get("/api/whoami")
        assert "too many failed logins" in refused(response, 429)


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/vhosts/", "/vhosts/a/b", "/users/a/b/c", "/policies/%2F/a/b"]
)
async def test_what_is_not_there(http: httpx.AsyncClient, path: str) -> None:
    assert refused(await http.get("/api" + path), 404)


async def test_a_method_that_is_not_possible(http: httpx.AsyncClient) -> None:
    response = await http.post("/api/vhosts/x")
    assert refused(response, 405) == "POST is not allowed here"
    assert response.headers["allow"] == "DELETE, GET, HEAD, OPTIONS, PUT"
    response = await http.options("/api/users/bulk-delete")
    assert (response.status_code, response.headers["allow"]) == (204, "OPTIONS, POST")


async def test_head_is_get_without_its_body(http: httpx.AsyncClient) -> None:
    response = await http.head("/api/whoami")
    assert response.status_code == 200
    assert response.headers["content-length"] == "41"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "the body is not JSON: "),
        (b"[]", "the body has to be a JSON object"),
        (b'{"tags": "", "tags": ""}', "the body is not JSON: an object has the same key twice"),
        (b"{}", "the body needs the key 'tags'"),
        (b'{"tags": 5}', "key 'tags' has to be a list of strings, not 5"),
        (b'{"tags": [5]}', "key 'tags' has to be a list of strings, not [5]"),
        (b'{"tags": "", "password": 5}', "key 'password' has to be a string, not 5"),
        (b'{"tags": "", "password": "%s"}' % (b"x" * 2**20), ""),
    ],
)
async def test_bad_bodies(http: httpx.AsyncClient, body: bytes, reason: str) -> None:
    status = 400 if reason else 413
    assert refused(await http.put("/api/users/x", content=body), status).startswith(reason)


async def test_names_are_decoded_once(http: httpx.AsyncClient) -> None:
    for path, name in (("a%2Fb", "a/b"), ("a%252F", "a%2F"), ("%C3%BC", "ü"), ("a+b", "a+b")):
        assert (await http.put(f"/api/users/{path}", json={"tags": ""})).status_code == 201
        assert (await get(http, f"/users/{path}"))["name"] == name
    assert "not UTF-8" in refused(await http.get("/api/users/%ff"), 400)
    assert "CR, LF" in refused(await http.get("/api/users/a%0A"), 400)


async def test_unknown_keys_are_ignored(http: httpx.AsyncClient) -> None:
    body = {"name": "other", "tags": "", "shoe-size": 44}
    assert (await http.put("/api/users/new", json=body)).status_code == 201


async def test_no_page_of_another_site_deletes_users(http: httpx.AsyncClient) -> None:
    """A form can be posted from anywhere, with the credentials that the browser remembers."""
    for media_type in ("text/plain; charset=utf-8", "application/x-www-form-urlencoded"):
        response = await http.post(
            "/api/users/bulk-delete", content=b'{"users": ["tony"]}',
            headers={"content-type": media_type},
        )  # fmt: skip
        assert "application/json is needed" in refused(response, 415)
    assert await get(http, "/users/tony")


async def test_below_the_base_path(world: World) -> None:
    async with world.client(base_path="/a/base") as http:
        assert (await http.get("/a/base/api/whoami")).json()["name"] == "guest"


async def test_a_virtual_host_called_api_is_reached(world: World) -> None:
    world.broker.add_vhost("api")
    world.users.set_permissions("guest", "api", ".*", ".*", ".*")
    async with world.client() as http:
        assert (await http.put("/api/endpoint/q/mail")).status_code == 201
        assert (await http.get("/api/endpoint/q/mail")).status_code == 200
    assert list(world.broker.vhosts["api"].queues) == ["mail"]
