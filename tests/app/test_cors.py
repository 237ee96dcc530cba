"""Pages of other origins: preflight, the fields that let them read, and what stays refused."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.server import WarrenServer
from tests.support.streams import LiveStream

PAGE = "https://page.example"
ASK = {"origin": PAGE, "access-control-request-method": "POST"}
ALLOWED = "access-control-allow-origin"
GUEST = ("guest", "guest")


@pytest.fixture(scope="module")
def warren() -> Iterator[WarrenServer]:
    with WarrenServer(args=["--cors-origins", PAGE]) as server:
        yield server


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url) as client:
        yield client


@pytest.fixture(scope="module")
def token(warren: WarrenServer) -> str:
    scopes = [{"read": "x/amq.fanout"}, {"write": "x/amq.fanout"}]
    url = f"{warren.http_url}/api/hub/tokens"
    found = httpx.post(url, json={"name": "page", "scopes": scopes}, auth=GUEST)
    return f"Bearer {found.raise_for_status().json()['token']}"


@pytest.mark.parametrize(
    "path",
    ["/endpoint/x/amq.fanout", "/%2F/endpoint/x/amq.fanout", "/subscribe/q/none", "/stream/q/none",
     "/hub", "/reversehttp", "/reversehttp/label/token", "/feeds"],
)  # fmt: skip
def test_preflight_needs_no_credentials(http: httpx.Client, path: str) -> None:
    answer = http.options(path, headers=ASK)
    assert (answer.status_code, answer.headers[ALLOWED]) == (204, PAGE)
    assert "PUT" in answer.headers["access-control-allow-methods"]
    assert "authorization" in answer.headers["access-control-allow-headers"].lower()
    assert answer.headers["access-control-max-age"] == "7200"
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize(
    "path", ["/api/whoami", "/streams/%2F/s/chunks", "/in/a", "/hub/callback/a"]
)
def test_other_routes_are_for_no_page(http: httpx.Client, path: str) -> None:
    answer = http.options(path, headers=ASK)
    assert ALLOWED not in answer.headers


def test_an_unknown_origin(http: httpx.Client, token: str) -> None:
    refused = http.options("/hub", headers={**ASK, "origin": "https://page.example.evil"})
    assert (refused.status_code, ALLOWED in refused.headers) == (403, False)
    assert "cors_origins" in refused.json()["detail"]
    headers = {"origin": "https://evil.example", "authorization": token}
    assert ALLOWED not in http.get("/endpoint/x/amq.fanout", headers=headers).headers


def test_a_page_reads_answers_and_errors(http: httpx.Client, token: str) -> None:
    headers = {"origin": PAGE, "authorization": token}
    path = "/endpoint/x/amq.fanout"
    for answer, status in (
        (http.post(path, headers=headers), 202),
        (http.get(path, headers=headers), 200),
        (http.post(path, headers={"origin": PAGE}), 401),
        (http.post("/endpoint/x/amq.topic", headers=headers), 403),
    ):
        assert (answer.status_code, answer.headers[ALLOWED]) == (status, PAGE)
        assert "Location" in answer.headers["access-control-expose-headers"]


def test_a_page_reads_a_stream(warren: WarrenServer, token: str) -> None:
    url = f"{warren.http_url}/stream/x/amq.fanout"
    with LiveStream(url, sse=True, authorization=token, origin=PAGE) as stream:
        assert stream.response.headers[ALLOWED] == PAGE


def test_a_password_is_refused_from_a_page_of_another_origin(http: httpx.Client) -> None:
    http.put("/api/users/ada", json={"password": "ada has one", "tags": ""}, auth=GUEST)
    rights = {"configure": ".*", "write": ".*", "read": ".*"}
    http.put("/api/permissions/%2F/ada", json=rights, auth=GUEST).raise_for_status()
    path, page = "/endpoint/x/amq.fanout", {"origin": PAGE}
    assert http.post(path, headers=page, auth=("ada", "ada has one")).status_code == 403
    assert http.post(path, headers=page, auth=GUEST).status_code == 401
    assert http.get("/stream/x/amq.fanout", headers=page, auth=GUEST).status_code == 401


def test_a_page_from_a_file(http: httpx.Client, warren: WarrenServer) -> None:
    file = {**ASK, "origin": "null"}
    assert http.options("/hub", headers=file).headers[ALLOWED] == "null"
    with WarrenServer(dev=False, args=["--default-pass", "a long password"]) as server:
        assert httpx.options(f"{server.http_url}/hub", headers=file).status_code == 403
