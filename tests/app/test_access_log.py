"""A line for each request, and no secret in it."""

from __future__ import annotations

import re

import httpx

from tests.support.server import WarrenServer

LINE = re.compile(
    r' INFO \S+\.access_log: (\S+) "(\S+) (\S+) HTTP/1.1" (\w+) (\d+) bytes \d+\.\d ms'
)


def test_what_is_logged_if_asked_for() -> None:
    with WarrenServer(args=["--access-log", "--log-level", "error"]) as server:
        with httpx.Client(base_url=server.http_url, auth=("guest", "guest")) as http:
            http.put("/endpoint/q/a%20b?arg.x-max-length=5")
            http.post("/endpoint/q/a%20b?hub.topic=secret", content=b"x")
            http.get("/in/secret")
            http.get("/rabbithub/hub/callback/secret?hub.mode=secret")
            http.get("/%0A%1b[31m")
        server.stop()
        assert LINE.findall(server.output()) == [
            ("127.0.0.1", "PUT", "/endpoint/q/a%20b", "201", made_bytes(server)),
            ("127.0.0.1", "POST", "/endpoint/q/a%20b", "202", "0"),
            *((("127.0.0.1", "GET", path, status, size)) for path, status, size in rest(server)),
        ]
        assert "secret" not in server.output()


def made_bytes(server: WarrenServer) -> str:
    url = f"{server.http_url}/endpoint/q/a%20b"
    body = f'{{"type":"queue","name":"a b","vhost":"/","url":"{url}"}}\n'
    return str(len(body))


def rest(server: WarrenServer) -> list[tuple[str, str, str]]:
    """Path and status of what is refused; how long the document is belongs to other tests."""
    found = LINE.findall(server.output())[2:]
    assert [(path, status) for _, _, path, status, _ in found] == [
        ("/in/...", "410"), ("/rabbithub/hub/callback/...", "404"), ("/%0A%1b[31m", "404"),
    ]  # fmt: skip
    return [(path, status, size) for _, _, path, status, size in found]


def test_nothing_is_logged_unasked() -> None:
    with WarrenServer(args=["--log-level", "info"]) as server:
        httpx.get(f"{server.http_url}/health/live")
        server.stop()
        assert "access_log" not in server.output()
