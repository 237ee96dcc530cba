"""Landing page, health, OpenAPI document, and what is not there."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.app.conftest import World
from tests.app.support import problem
from warrenmq.app.openapi import document
from warrenmq.app.openapi_answers import ANSWERS, QUERIES
from warrenmq.app.paths import HUB_PATHS, SECRET_PREFIXES
from warrenmq.app.routes.api.router import TABLES
from warrenmq.hub.service import Hub
from warrenmq.hub.subscriptions.options import PARAMETERS


@pytest.mark.parametrize("prefix", ["", "/a/base"])
@pytest.mark.parametrize("path", ["/", "/health/live", "/health/ready", "/openapi.json"])
async def test_open_to_all(world: World, prefix: str, path: str) -> None:
    async with world.client(auth=None, base_path="/a/base") as http:
        response = await http.get(prefix + path)
    assert response.status_code == 200
    assert response.content


async def test_ready_says_when_it_is_not(world: World, http: httpx.AsyncClient) -> None:
    world.ready = False
    assert (await http.get("/health/ready")).status_code == 503
    assert (await http.get("/health/live")).status_code == 200


async def test_openapi_tells_every_path(http: httpx.AsyncClient) -> None:
    document = (await http.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    paths = document["paths"]
    for letter in "xq":
        for base in ("", "/{vhost}"):
            endpoint = paths[f"{base}/endpoint/{letter}/{{name}}"]
            assert set(endpoint) == {"parameters", "get", "put", "post", "delete"}
            subscribe = paths[f"{base}/subscribe/{letter}/{{name}}"]
            assert set(subscribe) == {"parameters", "get", "post", "delete"}
            one = paths[f"{base}/subscriptions/{letter}/{{name}}"]
            assert set(one) == {"parameters", "get"}
    assert set(paths["/subscriptions"]) == {"get", "post"}
    assert set(paths["/subscriptions/errors"]) == {"get"}
    assert paths.keys() >= {"/health/live", "/health/ready", "/openapi.json"}


async def test_openapi_has_each_path_of_the_api_with_its_names(http: httpx.AsyncClient) -> None:
    paths = (await http.get("/openapi.json")).json()["paths"]
    for table in TABLES:
        for path, methods in table.items():
            told = paths["/api" + path]
            assert set(told) - {"parameters"} == {method.lower() for method in methods}
            names = [parameter["name"] for parameter in told.get("parameters", [])]
            assert [f"{{{name}}}" for name in names] == re.findall(r"\{\w+\}", path)
            assert len(set(names)) == len(names)
            assert all(told[method.lower()]["description"] for method in methods)


async def test_openapi_tells_what_each_operation_answers(http: httpx.AsyncClient) -> None:
    told = (await http.get("/openapi.json")).json()
    for path, operations in told["paths"].items():
        for method in operations.keys() - {"parameters"}:
            responses = operations[method]["responses"]
            assert any(status[0] in "23" for status in responses), (method, path)
            assert {"4XX", "5XX"} <= responses.keys()
            for answer in responses.values():
                for media_type, content in answer.get("content", {}).items():
                    assert ("json" in media_type) == ("schema" in content), (method, path)


def test_nothing_is_told_of_operations_that_are_not_there() -> None:
    paths = document("1")["paths"]
    assert paths.keys() == ANSWERS.keys()
    for path, answers in ANSWERS.items():
        assert paths[path].keys() - {"parameters"} == answers.keys()


async def test_openapi_tells_every_parameter_of_a_subscribe(http: httpx.AsyncClient) -> None:
    paths = (await http.get("/openapi.json")).json()["paths"]
    body = paths["/subscribe/x/{name}"]["post"]["requestBody"]["content"]
    (schema,) = (found["schema"] for found in body.values())
    assert schema["properties"].keys() >= set(PARAMETERS) | {
        "hub.mode", "hub.callback", "hub.topic", "hub.verify", "hub.verify_token",
        "hub.lease_seconds", "hub.secret",
    }  # fmt: skip


async def test_places_of_the_table_are_in_openapi(http: httpx.AsyncClient) -> None:
    paths = (await http.get("/openapi.json")).json()["paths"]
    assert {path.decode() for path in HUB_PATHS} <= paths.keys()
    assert {prefix.decode() + "{secret}" for prefix in SECRET_PREFIXES} <= paths.keys()
    assert paths["/in/{secret}"]["post"]["security"] == []


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/endpoint",
        "/endpoint/x",
        "/endpoint/z/a",
        "/endpoint/x/a/b",
        "/a/b/endpoint/x/c",
        "/Endpoint/x/a",
        "//endpoint/x/a/b",
        "/rabbithubendpoint/x/a",
        "/rabbithub/health/live",
        "/rabbithub/api/whoami",
        "/rabbithub/hub",
    ],
)
async def test_not_found(http: httpx.AsyncClient, path: str) -> None:
    response = await http.get(path)
    asked = response.url.raw_path.decode()  # of `//host/path` it is what follows the host
    told = problem(response, 404)
    assert told.startswith(f"there is nothing at {asked}")
    assert told.endswith("; GET / lists the main paths")
    assert response.text.endswith("}\n")


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/endpoint/people", ", /endpoint/x/NAME is an exchange and /endpoint/q/NAME a queue"),
        ("/vhost/subscribe/a", ", /subscribe/x/NAME is an exchange and /subscribe/q/NAME a queue"),
        ("/endpoints/x/people", "; did you mean /endpoint?"),
        ("/health/redy", "; did you mean /health/ready?"),
        ("/favicon.ico", ""),
    ],
)
async def test_what_may_have_been_meant(http: httpx.AsyncClient, path: str, hint: str) -> None:
    told = problem(await http.get(path), 404)
    assert told == f"there is nothing at {path}{hint}; GET / lists the main paths"


@pytest.mark.parametrize(
    ("path", "hint"),
    [("hub/subscription", "; did you mean /api/hub/subscriptions?"), ("nothing/like/it", "")],
)
async def test_what_may_have_been_meant_of_the_api(
    http: httpx.AsyncClient, path: str, hint: str
) -> None:
    response = await http.get(f"/api/{path}")
    assert response.status_code == 404
    assert f"there is no such path{hint}; see /openapi.json" in response.text


async def test_method_not_allowed(http: httpx.AsyncClient) -> None:
    response = await http.post("/health/live")
    problem(response, 405)
    assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD"}


async def test_the_root_as_rabbithub_has_it(http: httpx.AsyncClient) -> None:
    response = await http.post("/", content=b"anything")
    assert (response.status_code, response.text) == (200, "You posted!")
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        problem(await http.request(method, "/"), 501)


@pytest.mark.parametrize("prefix", ["", "/rabbithub", "/a/base"])
async def test_static_files(world: World, prefix: str) -> None:
    async with world.client(auth=None, base_path="/a/base") as http:
        path = f"{prefix}/static/description.xsl"
        response = await http.get(path)
        assert response.status_code == 200
        assert b"<xsl:stylesheet" in response.content
        again = {"If-None-Match": response.headers["etag"]}
        assert (
            await http.get(f"{prefix}/static/description.xsl", headers=again)
        ).status_code == 304


@pytest.mark.parametrize(
    "path",
    ["/static", "/static/", "/static/none", "/static/../README.md", "/static/%2e%2e/README.md"],
)
async def test_no_other_files(http: httpx.AsyncClient, path: str) -> None:
    problem(await http.get(path), 404)


@pytest.mark.parametrize(("path", "names"), QUERIES.items())
async def test_openapi_tells_the_query_of_each_listing(
    hub: Hub, http: httpx.AsyncClient, path: str, names: tuple[str, ...]
) -> None:
    told = document("1")["paths"][path]["get"]["parameters"]
    assert tuple(parameter["name"] for parameter in told) == names
    for name in names:
        response = await http.get(path.replace("{id}", "1" * 32), params={name: "1"})
        assert f"unknown parameter {name}" not in response.text
        assert f"unknown filter '{name}'" not in response.text
    response = await http.get(path.replace("{id}", "1" * 32), params={"nmae": "1"})
    assert response.status_code == 400
