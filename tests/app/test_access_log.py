"""A line for each request, and no secret in it."""

from __future__ import annotations

import re
import socket

import httpx

from tests.support.server import WarrenServer

LINE = re.compile(
    r' INFO \S+\.access_log: (\S+) "(\S+) (\S+) HTTP/1.1" (\w+) (\d+) bytes \d+\.\d ms'
)
CALLBACK = "https%3A%2F%2Fsecret%40example.org%2Fsecret%3Fa%3Dsecret"


def test_requests_are_logged_without_secrets() -> None:
    with WarrenServer(args=["--access-log", "--log-level", "error"]) as server:
        with httpx.Client(base_url=server.http_url, auth=("guest", "guest")) as http:
            http.put("/endpoint/q/a%20b?arg.x-max-length=5")
            http.post("/endpoint/q/a%20b?hub.topic=secret", content=b"x")
            http.get("/in/secret")
            http.get("/api/auth/hash_password/secret")
            http.get("/rabbithub/hub/callback/secret?hub.mode=secret")
            http.get("/%0A%1b[31m")
            http.get(f"/api/hub/subscriptions/%2F/x/amq.fanout/a/{CALLBACK}")
            http.get("/api/hub/topics/https://example.org/secret")
        server.stop()
        assert LINE.findall(server.output()) == [
            ("127.0.0.1", "PUT", "/endpoint/q/a%20b", "201", made_bytes(server)),
            ("127.0.0.1", "POST", "/endpoint/q/a%20b", "202", "0"),
            *((("127.0.0.1", "GET", path, status, size)) for path, status, size in rest(server)),
        ]
        assert "secret" not in server.output()


CHUNKED = b"transfer-encoding: chunked\r\n\r\n%x\r\n" % 2_000 + b"x" * 2_000
REFUSED = [
    (b"POST /endpoint/q/a?secret HTTP/1.1\r\nhost: a\r\ncontent-length: 2000\r\n\r\n", "413"),
    (b"POST /hub?secret HTTP/1.1\r\nhost: a\r\n" + CHUNKED, "413"),
    (b"GET /in/secret HTTP/1.1\r\nhost: a\r\n" + b"a: b\r\n" * 101, "431"),
    (b"GET /in/secret HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", "400"),
    (b"GET /api/a HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n", "404"),
    (b"no request at all\r\n\r\n", "400"),
]


def test_refused_requests_are_logged_once() -> None:
    args = ["--access-log", "--log-level", "error", "--max-message-bytes", "1000"]
    with WarrenServer(args=args) as server:
        for sent, status in REFUSED:
            with socket.create_connection(("127.0.0.1", server.http_port), 10) as connection:
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda: connection.recv(65_536), b""))
            assert answer.startswith(b"HTTP/1.1 " + status.encode())
        server.stop()
        lines = LINE.findall(server.output())
        assert [(method, path, status) for _, method, path, status, _ in lines] == [
            ("POST", "/endpoint/q/a", "413"), ("POST", "/hub", "413"), ("GET", "/in/...", "431"),
            ("GET", "/in/...", "400"), ("GET", "/api/a", "404"), ("-", "-", "400"),
        ]  # fmt: skip
        assert {peer for peer, *_ in lines} == {"127.0.0.1"}
        assert all(int(size) > 50 for *_, size in lines) and "secret" not in server.output()


def made_bytes(server: WarrenServer) -> str:
    url = f"{server.http_url}/endpoint/q/a%20b"
    body = f'{{"type":"queue","name":"a b","vhost":"/","url":"{url}"}}\n'
    return str(len(body))


def rest(server: WarrenServer) -> list[tuple[str, str, str]]:
    """Path and status of what is refused; how long the document is belongs to other tests."""
    found = LINE.findall(server.output())[2:]
    assert [(path, status) for _, _, path, status, _ in found] == [
        ("/in/...", "410"), ("/api/auth/hash_password/...", "200"),
        ("/rabbithub/hub/callback/...", "404"), ("/%0A%1b[31m", "404"),
        ("/api/hub/subscriptions/%2F/x/amq.fanout/a/https%3A%2F%2Fexample.org%2F...", "404"),
        ("/api/hub/topics/https://...", "404"),
    ]  # fmt: skip
    return [(path, status, size) for _, _, path, status, size in found]


def test_requests_are_not_logged_by_default() -> None:
    with WarrenServer(args=["--log-level", "info"]) as server:
        httpx.get(f"{server.http_url}/health/live")
        server.stop()
        assert "access_log" not in server.output()
