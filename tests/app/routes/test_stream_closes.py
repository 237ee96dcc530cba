"""Readers that send their last words with their handshake, and vanish: others read on."""

from __future__ import annotations

import base64
import socket
import struct

import httpx

from tests.support.server import WarrenServer
from tests.support.streams import LiveStream
from tests.support.websocket import BINARY, CLOSE, client_frame

TIMES, EACH = 20, 5
PUBLISH = client_frame(BINARY, b'{"publish": {"body": "last words"}}')
CLOSED = client_frame(CLOSE, b"\x03\xe8")
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: a close sends RST."""


def handshake(warren: WarrenServer, path: str, user: str = "guest") -> bytes:
    login = base64.b64encode(f"{user}:{user}".encode()).decode()
    lines = [
        f"GET {path} HTTP/1.1", f"Host: {warren.host}:{warren.http_port}",
        f"Authorization: Basic {login}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "", "",
    ]  # fmt: skip
    return "\r\n".join(lines).encode()


def make_user(http: httpx.Client, name: str) -> None:
    """The first check of its password takes so long that what follows the head comes before."""
    http.put(f"/api/users/{name}", json={"password": name, "tags": ""}).raise_for_status()
    rights = {"configure": "", "write": ".*", "read": ".*"}
    http.put(f"/api/permissions/%2F/{name}", json=rights).raise_for_status()


def test_publishes_and_a_close_after_the_handshake_leave_other_readers_alone(
    warren: WarrenServer,
) -> None:
    auth = ("guest", "guest")
    url = f"{warren.http_url}/endpoint/x/farewell"
    httpx.put(url, auth=auth).raise_for_status()
    sent = handshake(warren, "/stream/x/farewell") + PUBLISH * EACH + CLOSED
    with LiveStream(f"{warren.http_url}/stream/x/farewell") as other:
        for _ in range(TIMES):
            with socket.create_connection((warren.host, warren.http_port)) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                client.sendall(sent)
                assert client.recv(12) == b"HTTP/1.1 101"
            found = [one.get("body") for one in other.take(EACH)]
            assert found == ["last words"] * EACH
        httpx.post(url, content="goes on", auth=auth).raise_for_status()
        assert other.next()["body"] == "goes on"
    assert "Traceback" not in warren.output()


def test_publishes_and_a_close_after_the_handshake_take_nothing_from_a_queue(
    warren: WarrenServer,
) -> None:
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as http:
        http.put("/endpoint/q/untouched").raise_for_status()
        http.post("/endpoint/q/untouched", content="stays").raise_for_status()
        make_user(http, "new")
        sent = handshake(warren, "/stream/q/untouched", "new") + PUBLISH * EACH + CLOSED
        with socket.create_connection((warren.host, warren.http_port)) as client:
            client.sendall(sent)
            while client.recv(65536):
                pass
        found = http.get("/stream/q/untouched?wait_s=0", headers={"Accept": "application/json"})
        bodies = [one["body"] for one in found.json()["messages"]]
        assert bodies == ["stays", *["last words"] * EACH]


def test_what_is_no_request_behind_a_poll_ends_the_connection(warren: WarrenServer) -> None:
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as http:
        http.put("/endpoint/q/polled").raise_for_status()
        make_user(http, "poller")
    poll = handshake(warren, "/stream/q/polled?wait_s=0", "poller").replace(
        b"Upgrade: websocket\r\n", b""
    )
    poll = poll.replace(b"Sec-WebSocket-Version: 13", b"Accept: application/json")
    with socket.create_connection((warren.host, warren.http_port), timeout=30) as client:
        client.sendall(poll + PUBLISH)
        received = b""
        while more := client.recv(65536):
            received += more
    assert received.startswith(b"HTTP/1.1 200") and b"\r\nConnection: close\r\n" in received
