"""Landing page, health, OpenAPI document, and what is not there."""

from __future__ import annotations

import re
from typing import cast

import pytest
from httpx import AsyncClient
from starlette.routing import Route

from tests.app.conftest import World
from tests.app.support import problem
from warrenmq.app.openapi import document
from warrenmq.app.openapi_answers import ANSWERS
from warrenmq.app.route_table import other_routes, secret_routes
from warrenmq.app.routes.api.lists import LIST_QUERY
from warrenmq.app.routes.api.router import TABLES
from warrenmq.app.routes.publish import HttpPublisher
from warrenmq.hub.service import Hub
from warrenmq.hub.subscriptions.options import PARAMETERS


@pytest.mark.parametrize("prefix", ["", "/a/base"])
@pytest.mark.parametrize("path", ["/", "/health/live", "/health/ready", "/openapi.json"])
async def test_paths_without_credentials(world: World, prefix: str, path: str) -> None:
    async with world.client(auth=None, base_path="/a/base") as http:
        response = await http.get(prefix + path)
    assert response.status_code == 200
    assert response.content


async def test_ready_is_503_before_the_start(world: World, http: AsyncClient) -> None:
    world.ready = False
    assert (await http.get("/health/ready")).status_code == 503
    assert (await http.get("/health/live")).status_code == 200


async def test_openapi_has_each_path_of_the_api_with_its_names(http: AsyncClient) -> None:
    paths = (await http.get("/openapi.json")).json()["paths"]
    for table in TABLES:
        for path, methods in table.items():
            told = paths["/api" + path]
            assert set(told) - {"parameters"} == {method.lower() for method in methods}
            parameters = told.get("parameters", [])
            assert all(one["in"] == "path" and one["required"] for one in parameters)
            names = [one["name"] for one in parameters]
            assert [f"{{{name}}}" for name in names] == re.findall(r"\{\w+\}", path)
            assert len(set(names)) == len(names)
            assert all(told[method.lower()]["description"] for method in methods)


REFUSED = ("/restart", "/api/parameters/{component}/{vhost}/{name}")
"""Operations of plugins that Warren does not have."""


async def test_openapi_has_the_responses_of_each_operation(http: AsyncClient) -> None:
    told = (await http.get("/openapi.json")).json()
    for path, operations in told["paths"].items():
        for method in operations.keys() - {"parameters"}:
            responses = operations[method]["responses"]
            is_done = any(status[0] in "23" for status in responses)
            assert is_done or path.endswith(REFUSED), (method, path)
            assert {"4XX", "5XX"} <= responses.keys()
            for answer in responses.values():
                for media_type, content in answer.get("content", {}).items():
                    is_json = media_type in ("application/json", "application/problem+json")
                    # A long poll answers with messages, in one of several types.
                    is_described = is_json and "text/event-stream" not in answer["content"]
                    assert is_described == ("schema" in content), (method, path)


def test_openapi_has_no_other_operations() -> None:
    paths = document("1")["paths"]
    assert paths.keys() == ANSWERS.keys()
    for path, answers in ANSWERS.items():
        assert paths[path].keys() - {"parameters"} == answers.keys()


async def test_openapi_has_every_parameter_of_a_subscribe(http: AsyncClient) -> None:
    paths = (await http.get("/openapi.json")).json()["paths"]
    body = paths["/subscribe/x/{name}"]["post"]["requestBody"]["content"]
    (schema,) = (found["schema"] for found in body.values())
    assert schema["properties"].keys() >= set(PARAMETERS) | {
        "hub.mode", "hub.callback", "hub.topic", "hub.verify", "hub.verify_token",
        "hub.lease_seconds", "hub.secret",
    }  # fmt: skip


async def test_each_route_is_in_openapi(world: World, http: AsyncClient) -> None:
    paths = (await http.get("/openapi.json")).json()["paths"]
    publisher = cast(HttpPublisher, None)
    routes = secret_routes(world.context, publisher) + other_routes(world.context, lambda: True)
    found = {re.sub(r":\w+", "", route.path) for route in routes if isinstance(route, Route)}
    assert found - {"/{target}", "/{document}"} <= paths.keys()
    assert paths["/in/{secret}"]["post"]["security"] == []


@pytest.mark.parametrize(
    "path",
    [
        "/nothing", "/endpoint", "/endpoint/x/a/b", "/a/b/endpoint/x/c", "//endpoint/x/a/b",
        "/rabbithubendpoint/x/a", "/rabbithub/health/live", "/rabbithub/api/whoami", "/in/a/b",
        "/x/in/a", "/subscriptions/", "/%73ubscriptions", "/api",
    ],
)  # fmt: skip
async def test_unknown_paths_are_404(http: AsyncClient, path: str) -> None:
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
async def test_suggestions_for_unknown_paths(http: AsyncClient, path: str, hint: str) -> None:
    told = problem(await http.get(path), 404)
    assert told == f"there is nothing at {path}{hint}; GET / lists the main paths"


@pytest.mark.parametrize(
    ("path", "hint"),
    [("hub/subscription", "; did you mean /api/hub/subscriptions?"), ("nothing/like/it", "")],
)
async def test_suggestions_for_unknown_paths_of_the_api(
    http: AsyncClient, path: str, hint: str
) -> None:
    response = await http.get(f"/api/{path}")
    assert response.status_code == 404
    assert f"there is no such path{hint}; see /openapi.json" in response.text


async def test_method_not_allowed(http: AsyncClient) -> None:
    response = await http.post("/health/live")
    problem(response, 405)
    assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (f"/api{path}", methods["GET"].query)
        for table in TABLES
        for path, methods in table.items()
        # Lists of RabbitMQ's form ignore what they don't know, and the log has no end.
        if path.startswith(("/hub/", "/warren/"))
        and not path.endswith("/log")
        and "GET" in methods
        and methods["GET"].query
        and not set(LIST_QUERY) <= set(methods["GET"].query)
    ],
)
async def test_openapi_has_the_query_of_each_listing(
    hub: Hub, http: AsyncClient, path: str, names: tuple[str, ...]
) -> None:
    told = document("1")["paths"][path]["get"]["parameters"]
    assert tuple(parameter["name"] for parameter in told) == names
    for name in names:
        response = await http.get(path.replace("{id}", "1" * 32), params={name: "1"})
        assert f"unknown parameter {name}" not in response.text
        assert f"unknown filter '{name}'" not in response.text
    response = await http.get(path.replace("{id}", "1" * 32), params={"nmae": "1"})
    assert response.status_code == 400
