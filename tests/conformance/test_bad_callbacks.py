"""reliability.md section 6: callback URLs that are refused, by number, over HTTP.

What needs a resolver that lies stands in `tests/hub/guard/test_guard.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.http import Answer, Callback
from tests.support.server import WarrenServer

AUTH = ("guest", "guest")
GUEST = {"WARREN_ALLOW_GUEST": "1"}
TIMEOUT_S = 30.0


@pytest.fixture(scope="module")
def server() -> Iterator[WarrenServer]:
    """Not in development mode, with a queue to subscribe to."""
    with WarrenServer(dev=False, env=GUEST) as server:
        put_queue(server)
        yield server


def put_queue(server: WarrenServer) -> None:
    assert httpx.put(f"{server.http_url}/endpoint/q/in", auth=AUTH).is_success


def subscribe(server: WarrenServer, callback: str) -> httpx.Response:
    form = {"hub.mode": "subscribe", "hub.callback": callback, "hub.topic": "#"}
    url = f"{server.http_url}/subscribe/q/in"
    return httpx.post(url, data=form, auth=AUTH, timeout=TIMEOUT_S)


def refused(server: WarrenServer, callback: str, reason: str) -> None:
    answer = subscribe(server, callback)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert problem["field"] == "hub.callback" and reason in problem["detail"], problem
    assert "user:pw" not in answer.text


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        *((f"http://{host}/cb", "no plain address")
          for host in ("127.1", "0x7f000001", "2130706433", "0177.0.0.1", "0")),
        *((f"http://{host}/cb", "which is not public")
          for host in ("127.0.0.1", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[::1]", "[::]")),
        *((f"http://{host}/latest/meta-data", f"{host}, which is not public")
          for host in ("169.254.169.254", "100.64.0.1", "10.0.0.1", "192.168.1.1")),
        ("http://user:pw@example.org/cb", "carries user information"),
        *((url, "has the scheme")
          for url in ("file:///etc/passwd", "gopher://example.org/", "ftp://a.b/")),
        ("http://localhost/cb", "addresses that requests are sent to"),
        ("http://example.org:6379/", "port 6379 is not allowed"),
        ("http://example.org:0/", "port 0"), ("http://example.org:65536/", "out of range"),
        ("{server}/endpoint/q/in", "own address"), ("http://localhost:{port}/x", "own address"),
        *((f"http://{host}/", "must percent-encode")
          for host in ("127\u30020\u30020\u30021", "example\u3002org")),
    ],
)  # fmt: skip
def test_48_to_56_refused_callbacks(server: WarrenServer, url: str, reason: str) -> None:
    refused(server, url.format(server=server.http_url, port=server.http_port), reason)


def test_54_a_redirect_to_loopback_is_a_failed_attempt(callback: Callback) -> None:
    with WarrenServer(dev=True) as server, Callback() as inner:
        put_queue(server)
        callback.script(Answer(302, headers={"Location": inner.url}))
        assert subscribe(server, callback.url).status_code == 204
        url = f"{server.http_url}/endpoint/q/in"
        assert httpx.post(url, content=b"x", auth=AUTH).status_code == 202
        first, again = callback.wait(2, TIMEOUT_S)[:2]
        assert inner.requests == []
    assert first.headers["webhook-id"] == again.headers["webhook-id"]


def test_55_other_ports_are_a_setting(callback: Callback) -> None:
    with WarrenServer(dev=False, env=GUEST, args=["--callback-ports", "any"]) as server:
        put_queue(server)
        refused(server, "http://10.0.0.1:6379/cb", "10.0.0.1, which is not public")
        refused(server, callback.url, "127.0.0.1, which is not public")


def test_listed_networks_are_permitted() -> None:
    args = ["--allow-networks", "10.0.0.0/8", "--callback-ports", "8080"]
    with WarrenServer(dev=False, env=GUEST, args=args) as server:
        put_queue(server)
        assert uploaded(server, "http://10.1.2.3:8080/cb") == 1
        refused(server, "http://10.1.2.3/cb", "port 80 is not allowed")
        refused(server, "http://192.168.0.1:8080/cb", "which is not public")
        assert uploaded(server, "http://192.168.0.1:8080/cb") == 1


def uploaded(server: WarrenServer, callback: str) -> int:
    """How many subscriptions there are after an upload of one to this callback; an inactive one
    is checked, and not asked."""
    resource = {"vhost": "/", "resource_type": "queue", "resource_name": "in", "topic": "#"}
    entry = {**resource, "callback": callback, "status": "inactive"}
    url = f"{server.http_url}/subscriptions"
    answer = httpx.post(url, json={"subscriptions": [entry]}, auth=AUTH, timeout=TIMEOUT_S)
    assert answer.status_code == 202, answer.text
    return len(httpx.get(url, auth=AUTH).json()["subscriptions"])
