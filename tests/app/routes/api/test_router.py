"""Every path with every method and every tag; and the forms of refusals."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from warrenmq.app.logs.levels import set_level
from warrenmq.app.node import Node
from warrenmq.app.routes.api.router import TABLES
from warrenmq.core.definitions.kinds import GlobalParameterDefinition

from . import test_health
from .support import get, refused, tagged

TAGS = ("", "impersonator", "management", "policymaker", "monitoring", "administrator")
ALL = frozenset({"management", "policymaker", "monitoring", "administrator"})
POLICIES = frozenset({"policymaker", "administrator"})
MONITORING = frozenset({"monitoring", "administrator"})
ADMINISTRATOR = frozenset({"administrator"})

PATTERNS: dict[str, Any] = {"configure": "", "write": "", "read": ""}
POLICY: dict[str, Any] = {"pattern": "", "definition": {"max-length": 1}}
TOPIC: dict[str, Any] = {"exchange": "x", "write": "", "read": ""}

NODE = Node().name
HEALTH_CHECKS = (
    "alarms", "local-alarms", "certificate-expiration/1/days", *test_health.HOLDING,
)  # fmt: skip

Call = tuple[str, str, Any, frozenset[str], int]
"""Method, path, body, tags that may call it, and the status for those."""
CALLS: list[Call] = [
    ("GET", "/whoami", None, ALL, 200),
    ("GET", "/vhosts", None, ALL, 200),
    ("GET", "/vhosts/%2F", None, ALL, 200),
    ("PUT", "/vhosts/new", {}, ADMINISTRATOR, 201),
    ("DELETE", "/vhosts/closed", None, ADMINISTRATOR, 204),
    ("POST", "/vhosts/closed/deletion/protection", None, ADMINISTRATOR, 204),
    ("DELETE", "/vhosts/closed/deletion/protection", None, ADMINISTRATOR, 204),
    ("GET", "/vhosts/%2F/permissions", None, ADMINISTRATOR, 200),
    ("GET", "/vhosts/%2F/topic-permissions", None, ADMINISTRATOR, 200),
    ("GET", "/users", None, ADMINISTRATOR, 200),
    ("GET", "/users/without-permissions", None, ADMINISTRATOR, 200),
    ("POST", "/users/bulk-delete", {"users": []}, ADMINISTRATOR, 204),
    ("GET", "/users/tony", None, ADMINISTRATOR, 200),
    ("PUT", "/users/new", {"tags": ""}, ADMINISTRATOR, 201),
    ("DELETE", "/users/tony", None, ADMINISTRATOR, 204),
    ("GET", "/users/tony/permissions", None, ADMINISTRATOR, 200),
    ("GET", "/users/tony/topic-permissions", None, ADMINISTRATOR, 200),
    ("GET", "/permissions", None, ADMINISTRATOR, 200),
    ("GET", "/permissions/%2F/tony", None, ADMINISTRATOR, 200),
    ("PUT", "/permissions/closed/tony", PATTERNS, ADMINISTRATOR, 201),
    ("DELETE", "/permissions/%2F/tony", None, ADMINISTRATOR, 204),
    ("GET", "/topic-permissions", None, ADMINISTRATOR, 200),
    ("GET", "/topic-permissions/%2F/tony", None, ADMINISTRATOR, 200),
    ("PUT", "/topic-permissions/%2F/tony", TOPIC, ADMINISTRATOR, 201),
    ("DELETE", "/topic-permissions/%2F/tony", None, ADMINISTRATOR, 204),
    ("GET", "/topic-permissions/%2F/tony/amq.topic", None, ADMINISTRATOR, 200),
    ("DELETE", "/topic-permissions/%2F/tony/amq.topic", None, ADMINISTRATOR, 204),
    ("GET", "/policies", None, POLICIES, 200),
    ("GET", "/policies/%2F", None, POLICIES, 200),
    ("GET", "/policies/%2F/old", None, POLICIES, 200),
    ("PUT", "/policies/%2F/new", POLICY, POLICIES, 201),
    ("DELETE", "/policies/%2F/old", None, POLICIES, 204),
    ("GET", "/operator-policies", None, POLICIES, 200),
    ("GET", "/operator-policies/%2F", None, POLICIES, 200),
    ("GET", "/operator-policies/%2F/old", None, POLICIES, 200),
    ("PUT", "/operator-policies/%2F/new", POLICY, ADMINISTRATOR, 201),
    ("DELETE", "/operator-policies/%2F/old", None, ADMINISTRATOR, 204),
    ("GET", "/parameters", None, POLICIES, 200),
    ("GET", "/parameters/shovel", None, POLICIES, 200),
    ("GET", "/parameters/shovel/%2F", None, POLICIES, 200),
    ("GET", "/parameters/operator_policy/%2F/old", None, POLICIES, 200),
    ("DELETE", "/parameters/shovel/%2F/old", None, POLICIES, 404),
    ("GET", "/global-parameters", None, POLICIES, 200),
    ("GET", "/global-parameters/old", None, POLICIES, 200),
    ("PUT", "/global-parameters/new", {"value": 1}, ADMINISTRATOR, 201),
    ("DELETE", "/global-parameters/old", None, ADMINISTRATOR, 204),
    ("GET", "/vhost-limits", None, ALL, 200),
    ("GET", "/vhost-limits/%2F", None, ALL, 200),
    ("PUT", "/vhost-limits/%2F/max-queues", {"value": 5}, ADMINISTRATOR, 201),
    ("DELETE", "/vhost-limits/%2F/max-queues", None, ADMINISTRATOR, 204),
    ("GET", "/user-limits", None, ALL, 200),
    ("GET", "/user-limits/someone", None, ALL, 200),
    ("PUT", "/user-limits/tony/max-channels", {"value": 5}, ADMINISTRATOR, 201),
    ("DELETE", "/user-limits/tony/max-channels", None, ADMINISTRATOR, 204),
    ("GET", "/connections", None, ALL, 200),
    ("GET", "/connections/username/someone", None, ALL, 200),
    ("GET", "/connections/c", None, ALL, 404),
    ("GET", "/connections/c/channels", None, ALL, 404),
    ("GET", "/vhosts/%2F/connections", None, ALL, 200),
    ("GET", "/channels", None, ALL, 200),
    ("GET", "/channels/c", None, ALL, 404),
    ("GET", "/vhosts/%2F/channels", None, ALL, 200),
    ("GET", "/consumers", None, ALL, 200),
    ("GET", "/consumers/%2F", None, ALL, 200),
    ("DELETE", "/consumers/%2F/c/1/tag", None, ALL, 404),
    ("DELETE", "/connections/c", None, ALL, 404),
    ("DELETE", "/connections/username/tony", None, ADMINISTRATOR, 204),
    ("GET", "/warren/quarantine", None, ADMINISTRATOR, 200),
    ("GET", "/warren/log-levels", None, ADMINISTRATOR, 200),
    ("PUT", "/warren/log-levels/app.package", {"level": "error"}, ADMINISTRATOR, 201),
    ("DELETE", "/warren/log-levels/app.conformance", None, ADMINISTRATOR, 204),
    ("GET", "/health/checks/patterns", None, MONITORING, 200),
    ("GET", "/health/checks/storage", None, MONITORING, 200),
    ("GET", "/overview", None, ALL, 200),
    ("GET", "/cluster-name", None, ALL, 200),
    ("PUT", "/cluster-name", {"name": "ours"}, ADMINISTRATOR, 204),
    ("GET", "/extensions", None, ALL, 200),
    ("GET", "/version", None, ALL, 200),
    ("GET", "/nodes", None, MONITORING, 200),
    ("GET", f"/nodes/{NODE}", None, MONITORING, 200),
    ("GET", f"/nodes/{NODE}/memory", None, MONITORING, 200),
    ("GET", "/feature-flags", None, ALL, 200),
    ("PUT", "/feature-flags/quorum_queue/enable", None, ADMINISTRATOR, 204),
    ("GET", "/deprecated-features", None, ALL, 200),
    ("GET", "/deprecated-features/used", None, ALL, 200),
    ("GET", "/shovels", None, MONITORING, 200),
    ("GET", "/shovels/%2F", None, MONITORING, 200),
    ("GET", "/federation-links", None, MONITORING, 200),
    ("GET", "/federation-links/%2F", None, MONITORING, 200),
    ("POST", "/rebalance/queues", None, ADMINISTRATOR, 204),
    ("DELETE", "/reset", None, ADMINISTRATOR, 204),
    ("DELETE", f"/reset/{NODE}", None, ADMINISTRATOR, 204),
    ("GET", f"/auth/attempts/{NODE}", None, MONITORING, 200),
    ("GET", f"/auth/attempts/{NODE}/source", None, MONITORING, 200),
    ("PUT", "/auth/hash_password", {"password": "x"}, ALL, 200),
    ("GET", "/auth/hash_password/x", None, ALL, 200),
    ("GET", "/healthchecks/node", None, ALL, 200),
    ("GET", f"/healthchecks/node/{NODE}", None, ALL, 200),
    ("GET", "/aliveness-test/%2F", None, ALL, 200),
    *(("GET", f"/health/checks/{check}", None, ALL, 200) for check in HEALTH_CHECKS),
]


def route_of(call: Call) -> tuple[str, str]:
    """Returns path and method as in the route tables; literals come before names."""
    parts = call[1].split("/")
    found = [
        path
        for table in TABLES
        for path in table
        if len(known := path.split("/")) == len(parts)
        and all(one[:1] == "{" or one == part for one, part in zip(known, parts, strict=True))
    ]
    return min(found, key=lambda path: path.count("{")), call[0]


def prepare(world: World) -> None:
    """What the calls get and delete."""
    from tests.core.policy.support import put

    world.users.set_topic_permission("tony", "/", "amq.topic", "", "")
    put(world.broker, "old", max_length=5)
    put(world.broker, "old", operator=True, max_length=5)
    world.broker.global_parameters.set(GlobalParameterDefinition("old", "1"))
    set_level("app.conformance", "error")
    set_level("app.package", None)


@pytest.mark.parametrize("call", CALLS)
async def test_required_tags(world: World, call: Call) -> None:
    method, path, body, may, status = call
    prepare(world)
    content = {} if body is None else {"json": body}
    answered: list[httpx.Response] = []
    for tag in TAGS:
        credentials = tagged(world, *([tag] if tag else []))
        async with world.client(auth=credentials) as http:
            response = await http.request(method, "/api" + path, **content)
        if tag in may:
            assert response.is_success or response.status_code == 404, response.text
            answered.append(response)
        else:
            assert "user 'someone' needs the tag '" in refused(response, 403)
    assert answered[0].status_code == status
    assert bool(answered[0].content) == (status in (200, 404))


async def test_credentials_are_needed(world: World) -> None:
    async with world.client(auth=None) as http:
        for method, path, *_ in CALLS:
            response = await http.request(method, "/api" + path)
            assert "credentials" in refused(response, 401)
            assert response.headers["www-authenticate"].startswith("Basic ")


def test_every_route_is_among_these() -> None:
    """Those of the hub have owners beside tags, and those of bindings, exchanges and queues need
    permissions, sessions need none, snapshots a disk and some checks a listener: they are tried in
    files of their own. Parameters are never put, and queues never restarted."""
    built = {(path, method) for table in TABLES for path in table for method in table[path]}
    heads = (
        "/hub/", "/bindings", "/exchanges", "/queues", "/warren/queues/",
        "/warren/audit", "/warren/login", "/warren/session", "/warren/logout",
        "/warren/setup", "/warren/snapshots",
        "/health/checks/port-", "/health/checks/protocol-", "/definitions",
    )  # fmt: skip
    apart = {(path, method) for path, method in built if path.startswith(heads)}
    apart |= {("/auth", "GET"), ("/warren/log", "GET"), ("/warren/live", "GET")}
    apart |= {("/livelog", "GET"), ("/logs", "GET")}
    apart |= {(path, method) for path, method in built if path.endswith("/restart")}
    apart.add(("/parameters/{component}/{vhost}/{name}", "PUT"))
    assert built - apart == {route_of(call) for call in CALLS}


@pytest.mark.parametrize("auth", [None, ("guest", "wrong")])
@pytest.mark.parametrize(("method", "path"), [("GET", "/nothing"), ("POST", "/vhosts/x")])
async def test_credentials_are_checked_before_the_path(
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
    "path", ["/", "/nothing", "/vhosts//", "/vhosts/a/b", "/users/a/b/c", "/policies/%2F/a/b"]
)
async def test_unknown_paths_are_404(http: AsyncClient, path: str) -> None:
    assert refused(await http.get("/api" + path), 404)


@pytest.mark.parametrize("path", ["/users", "/permissions", "/cluster-name", "/queues/%2F"])
async def test_a_slash_at_the_end_changes_nothing(http: AsyncClient, path: str) -> None:
    assert await get(http, path + "/") == await get(http, path)


async def test_method_not_allowed(http: AsyncClient) -> None:
    response = await http.post("/api/vhosts/x")
    assert refused(response, 405) == "POST is not allowed here"
    assert response.headers["allow"] == "DELETE, GET, HEAD, OPTIONS, PUT"
    response = await http.options("/api/users/bulk-delete")
    assert (response.status_code, response.headers["allow"]) == (204, "OPTIONS, POST")


async def test_head_is_get_without_its_body(http: AsyncClient) -> None:
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
async def test_bad_bodies_are_refused(http: AsyncClient, body: bytes, reason: str) -> None:
    status = 400 if reason else 413
    assert refused(await http.put("/api/users/x", content=body), status).startswith(reason)


async def test_names_are_decoded_once(http: AsyncClient) -> None:
    for path, name in (("a%2Fb", "a/b"), ("a%252F", "a%2F"), ("%C3%BC", "ü"), ("a+b", "a+b")):
        assert (await http.put(f"/api/users/{path}", json={"tags": ""})).status_code == 201
        assert (await get(http, f"/users/{path}"))["name"] == name
    assert "not UTF-8" in refused(await http.get("/api/users/%ff"), 400)
    assert "CR, LF" in refused(await http.get("/api/users/a%0A"), 400)


async def test_unknown_keys_are_ignored(http: AsyncClient) -> None:
    body = {"name": "other", "tags": "", "shoe-size": 44}
    assert (await http.put("/api/users/new", json=body)).status_code == 201


async def test_no_page_of_another_site_deletes_users(http: AsyncClient) -> None:
    for media_type in ("text/plain; charset=utf-8", "application/x-www-form-urlencoded"):
        for sign in (
            {"origin": "http://hub"},
            {"sec-fetch-site": "none"},
            {"user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:60.0) Gecko/20100101"},
        ):
            response = await http.post(
                "/api/users/bulk-delete", content=b'{"users": ["tony"]}',
                headers={"content-type": media_type, **sign},
            )  # fmt: skip
            assert "application/json is needed" in refused(response, 415)
    assert await get(http, "/users/tony")


async def test_curl_may_leave_out_that_a_body_is_json(http: AsyncClient) -> None:
    form = {"content-type": "application/x-www-form-urlencoded", "user-agent": "curl/8.5.0"}
    body = b'{"users": ["tony"]}'
    response = await http.post("/api/users/bulk-delete", content=body, headers=form)
    assert response.status_code == 204
    assert refused(await http.get("/api/users/tony"), 404)


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
