"""The module and the demos, as browsers get them."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from httpx import AsyncClient

from warrenmq.app.routes.browser_files import DEMOS

from .conftest import World
from .support import problem

ALL = sorted(file.stem for file in DEMOS.glob("*.html"))


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/js/warren.js", "text/javascript"),
        ("/js/compat.js", "text/javascript"),
        ("/demos/demo.js", "text/javascript"),
        ("/demos/demo.css", "text/css"),
    ],
)
async def test_pages_of_any_site_may_load_them(
    http: AsyncClient, path: str, media_type: str
) -> None:
    response = await http.get(path, headers={"Origin": "null"})
    assert response.status_code == 200
    assert response.headers["content-type"].startswith(media_type)
    assert response.headers["access-control-allow-origin"] == "*"
    again = await http.get(path, headers={"If-None-Match": response.headers["etag"]})
    assert again.status_code == 304
    assert again.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("name", ALL)
async def test_a_demo_names_this_hub_and_runs_its_own_scripts_alone(
    http: AsyncClient, name: str
) -> None:
    response = await http.get(f"/demos/{name}.html", headers={"Host": "hub.example:8080"})
    assert response.status_code == 200
    assert "localhost:15672" not in response.text
    assert 'href="http://hub.example:8080/demos/demo.css"' in response.text
    policy = response.headers["content-security-policy"]
    assert "unsafe" not in policy and "default-src 'none'" in policy
    for kind, text in re.findall(r"<(script|style)\b[^>]*>(.*?)</\1>", response.text, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert re.search(rf"{kind}-src [^;]*'sha256-{re.escape(digest)}'", policy)
    assert not re.search(r"<[^>]+\son\w+=|<[^>]+\sstyle=|javascript:", response.text)


async def test_a_demo_has_the_path_of_a_proxy(world: World) -> None:
    async with world.client(auth=None, base_path="/a/base") as http:
        response = await http.get("/a/base/demos/rabbitlog.html")
        assert "/a/base/js/warren.js'" in response.text


async def test_the_list_of_demos(http: AsyncClient) -> None:
    response = await http.get("/demos/")
    links = re.findall(r'<a href="#(\w+)"', response.text)
    assert sorted(["index", *links]) == ALL


@pytest.mark.parametrize("prefix", ["", "/rabbithub", "/a/base"])
async def test_static_files_are_found_below_each_prefix(world: World, prefix: str) -> None:
    async with world.client(auth=None, base_path="/a/base") as http:
        response = await http.get(f"{prefix}/static/description.xsl")
    assert response.status_code == 200
    assert b"<xsl:stylesheet" in response.content


@pytest.mark.parametrize(
    "path",
    [
        "/demos/none.html", "/demos/%2e%2e.html", "/js/none.js", "/js/", "/static", "/static/",
        "/static/none", "/static/../README.md", "/static/%2e%2e/README.md",
    ],
)  # fmt: skip
async def test_other_files_are_not_found(http: AsyncClient, path: str) -> None:
    problem(await http.get(path), 404)


@pytest.mark.parametrize("path", ["/demos", "/docs", "/docs/api"])
async def test_a_page_is_found_without_its_slash(world: World, path: str) -> None:
    async with world.client(auth=None, base_path="/a/base") as http:
        response = await http.get(f"/a/base{path}", follow_redirects=True)
    assert (response.status_code, response.url.path) == (200, f"/a/base{path}/")
    assert [one.status_code for one in response.history] == [307]


async def test_the_page_of_the_api_loads_nothing_from_elsewhere(http: AsyncClient) -> None:
    page = await http.get("/docs/api/")
    assert page.headers["content-type"].startswith("text/html")
    for path in ("/docs/api/", "/docs/api/docs.js", "/docs/api/docs.css"):
        policy = (await http.get(path)).headers["content-security-policy"]
        assert policy.startswith("default-src 'self'; ")
    assert not re.search(r'(src|href)="(https?:)?//|<script[^>]*>[^<]|<style|\son\w+=', page.text)
