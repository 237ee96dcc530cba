"""What a browser is shown of a problem, and that nobody else is."""

from __future__ import annotations

import re

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.support import problem

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
PATHS = ("/nothing/at/all", "/endpoint/x/none", "/subscriptions/x/none", "/api/none", "/hub?x")


@pytest.mark.parametrize("path", PATHS[:-1])
@pytest.mark.parametrize("prefix", ["", "/a/base"])
async def test_browsers_get_a_page_with_working_links(world: World, prefix: str, path: str) -> None:
    async with world.client(auth=None, base_path="/a/base") as http:
        response = await http.get(prefix + path, headers=BROWSER)
        assert response.status_code == (404 if path == PATHS[0] else 401)
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers["vary"] == "Accept"
        if response.status_code == 401:
            assert response.headers["www-authenticate"].startswith("Basic")
            assert "Log in" in response.text
        links = re.findall(r'href="([^"]+)"', response.text)
        targets = [response.url.join(link) for link in links]
        assert {url.path for url in targets} >= {f"{prefix}/", f"{prefix}/openapi.json"}
        for url in targets:
            assert (await http.get(url)).status_code == 200


async def test_names_are_escaped(http: AsyncClient) -> None:
    response = await http.get("/endpoint/x/%3Cscript%3E", headers=BROWSER)
    assert response.status_code == 404
    assert "&lt;script&gt;" in response.text
    assert "<script" not in response.text


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "text/xml", "image/png"])
@pytest.mark.parametrize("path", PATHS[:3])
async def test_other_clients_get_a_problem_document(
    http: AsyncClient, path: str, accept: str | None
) -> None:
    headers = {} if accept is None else {"Accept": accept}
    response = await http.get(path, headers=headers)
    assert problem(response, 400 if path.startswith("/subs") else 404)


async def test_publishing_answers_a_browser_too(http: AsyncClient) -> None:
    response = await http.post("/endpoint/x/none", headers=BROWSER, content=b"x")
    assert (response.status_code, response.headers["content-type"][:9]) == (404, "text/html")


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "text/plain"),
        ("image/png", "text/plain"),
        ("application/problem+json", "application/problem+json"),
        ("application/json", "application/problem+json"),
        (BROWSER["Accept"], "text/html"),
    ],
)
async def test_errors_at_hub_are_plain_text_by_default(
    http: AsyncClient, accept: str, media_type: str
) -> None:
    response = await http.post("/hub", data={"hub.mode": "dance"}, headers={"Accept": accept})
    assert response.status_code == 400
    assert response.headers["content-type"].partition(";")[0] == media_type
    assert "hub.mode" in response.text


async def test_own_paths_of_the_api_have_the_one_form_of_errors(http: AsyncClient) -> None:
    for path in ("/api/hub/none", "/api/hub/attempts?limit=x", "/api/warren/none"):
        response = await http.get(path)
        problem(response, response.status_code)
    assert (await http.get("/api/users/nobody")).json().keys() == {"error", "reason"}
