"""Landing page, health, OpenAPI document, and what is not there."""

from __future__ import annotations

import httpx
import pytest

from tests.app.conftest import World
from tests.app.support import problem


@pytest.mark.parametrize("prefix", ["", "/rabbithub", "/a/base"])
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
    assert paths.keys() >= {"/health/live", "/health/ready", "/openapi.json"}


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
    ],
)
async def test_not_found(http: httpx.AsyncClient, path: str) -> None:
    problem(await http.get(path), 404)


async def test_method_not_allowed(http: httpx.AsyncClient) -> None:
    response = await http.post("/health/live")
    problem(response, 405)
    assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD"}
