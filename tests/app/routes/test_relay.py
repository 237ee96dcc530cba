"""`/reversehttp/_relay`: requests to listed hosts, for users."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.app.routes.test_reversehttp import BASIC, fails
from tests.support.http import Answer, Callback
from tests.support.server import WarrenServer
from tests.support.tunnels import GATEWAY, Tunnels

RELAY = f"{GATEWAY}/_relay"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def target() -> Iterator[Callback]:
    with Callback() as target:
        yield target


@pytest.fixture(scope="module")
def tunnels(target: Callback) -> Iterator[Tunnels]:
    hosts = f"127.0.0.1:{target.port}, 10.0.0.1, localhost:1, *.example.org"
    with WarrenServer(env={"WARREN_RELAY_HOSTS": hosts}) as server:
        found = Tunnels(server.http_port)
        yield found
        found.close()


def test_a_request_and_its_response(tunnels: Tunnels, target: Callback) -> None:
    target.script(Answer(404, {"X-Theirs": "1", "Keep-Alive": "timeout=5"}, b"not here"))
    message = (
        b"PUT /a?b=c HTTP/1.1\r\nHost: anything\r\nX-Mine: 2\r\nCookie: a=1\r\nCookie: b=2\r\n"
        b"Connection: X-Drop\r\nX-Drop: 3\r\nContent-Length: 2\r\n\r\nhi"
    )
    url = f"{RELAY}/127.0.0.1:{target.port}"
    answer = tunnels.ask("POST", url, BASIC, "Content-Type: message/http", body=message)
    assert (answer.status, answer.fields["content-type"]) == (200, "message/http")
    assert answer.body.startswith(b"HTTP/1.1 404 Not Found\r\n")
    assert answer.body.endswith(b"\r\nContent-Length: 8\r\n\r\nnot here")
    assert b"X-Theirs: 1" in answer.body and b"Keep-Alive" not in answer.body
    request = target.requests[-1]
    assert (request.method, request.raw_path, request.body) == ("PUT", "/a?b=c", b"hi")
    assert request.headers["host"] == f"127.0.0.1:{target.port}"
    assert (request.headers["x-mine"], request.headers["cookie"]) == ("2", "a=1; b=2")
    assert "x-drop" not in request.headers


@pytest.mark.parametrize(
    ("host", "status", "part"),
    [
        ("evil.example", 503, "is not listed"),
        ("example.org", 503, "is not listed"),
        ("a.example.org:81", 503, "is not listed"),
        ("10.0.0.1", 503, "is not public"),
        ("localhost:1", 503, "can't be reached"),
        ("localhost.:1", 503, "can't be reached"),
        ("a:0", 400, "no HOST or HOST:PORT"),
        ("a:b", 400, "no HOST or HOST:PORT"),
    ],
)
def test_hosts_that_are_not_listed_are_refused(
    tunnels: Tunnels, host: str, status: int, part: str
) -> None:
    fails(tunnels.ask("POST", f"{RELAY}/{host}", BASIC, body=GET), status, part)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"GET / HTTP/1.1\r\n",
        b"GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
        GET + GET,
        b"x" * 99,
    ],
)
def test_bad_requests_are_refused(tunnels: Tunnels, target: Callback, message: bytes) -> None:
    url = f"{RELAY}/127.0.0.1:{target.port}"
    fails(tunnels.ask("POST", url, BASIC, body=message), 400, "not a complete HTTP request")


def test_the_relay_needs_a_tunnel_scope_and_one_whole_request(
    tunnels: Tunnels, target: Callback
) -> None:
    url = f"{RELAY}/127.0.0.1:{target.port}"
    fails(tunnels.ask("POST", url, body=GET), 401, "credentials are needed")
    typed = tunnels.ask("POST", url, BASIC, "Content-Type: application/http", body=GET)
    fails(typed, 415, "one request at a time")
    for scopes, status in (([{"read": "x/*"}], 403), ([{"tunnel": "_relay"}], 200)):
        made = json.dumps({"name": "page", "scopes": scopes}).encode()
        token = json.loads(tunnels.ask("POST", "/api/hub/tokens", BASIC, body=made).body)["token"]
        answer = tunnels.ask("POST", url, f"Authorization: Bearer {token}", body=GET)
        assert answer.status == status, answer.body
    long = tunnels.ask("POST", url, BASIC, body=b"x" * (1024 * 1024 + 65_537))
    fails(long, 413, "more than")


def test_off_by_default() -> None:
    with WarrenServer() as server:
        tunnels = Tunnels(server.http_port)
        fails(tunnels.ask("POST", f"{RELAY}/a", BASIC, body=GET), 404, "setting relay_hosts")
        tunnels.close()
