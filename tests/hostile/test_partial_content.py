"""Messages and forms that never end: whoever sends them pays, and nobody else."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.conformance import frames, raw
from tests.support.server import WarrenServer

from .support import FRAME_MAX, MIB, forget_peak, method, peak_bytes, push

AUTH = ("guest", "guest")
MEMORY_LIMIT = 64 * MIB
BOUND_BYTES = MEMORY_LIMIT // 2
"""A quarter of the limit for the user, and what sockets and buffers take."""
MESSAGE_BYTES = 16 * MIB
CLIENTS = 8


@pytest.fixture(scope="module")
def small() -> Iterator[WarrenServer]:
    with WarrenServer(env={"WARREN_MEMORY_LIMIT": f"{MEMORY_LIMIT}B"}) as server:
        for name, rights in (("nobody", ""), ("mallory", ".*")):
            put(server, f"/api/users/{name}", password="long enough", tags="")
            permissions = {"configure": rights, "write": rights, "read": rights}
            put(server, f"/api/permissions/%2F/{name}", **permissions)
        put(server, "/endpoint/q/honest")
        yield server


def put(server: WarrenServer, path: str, **body: str) -> None:
    answer = httpx.put(server.http_url + path, json=body or None, auth=AUTH, timeout=30)
    answer.raise_for_status()


def begin_message(server: WarrenServer, stack: ExitStack, user: str) -> tuple[raw.Client, int]:
    """All but the last MiB of a message that claims the largest size, or what is read of it."""
    client = stack.enter_context(raw.connect(server.amqp_port, user=user, password="long enough"))
    client.channel()
    client.send(method("Basic.Publish", routing_key="honest"))
    client.send(frames.frame(frames.HEADER, 1, frames.content_header(MESSAGE_BYTES)))
    body = frames.body_frames(1, bytes(MIB), FRAME_MAX)
    return client, push(client.socket, body, 15 * len(body))


@pytest.mark.parametrize("user", ["nobody", "mallory"])
def test_messages_that_never_end(small: WarrenServer, user: str) -> None:
    before = forget_peak(small)
    with ExitStack() as stack:
        clients = [begin_message(small, stack, user)[0] for _ in range(CLIENTS)]
        publish_honestly(small)
        if user == "nobody":
            for client in clients:
                assert client.expect("Channel.Close", 1).reply_code == 403
        assert peak_bytes(small) - before < BOUND_BYTES
    publish_honestly(small)


@pytest.mark.parametrize("auth", ["", "Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n"])
def test_forms_that_never_end(small: WarrenServer, auth: str) -> None:
    before = forget_peak(small)
    head = (
        f"POST /hub HTTP/1.1\r\nHost: localhost\r\n{auth}"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {MIB}\r\n\r\n"
    )
    with ExitStack() as stack:
        for _ in range(100):
            connection = stack.enter_context(
                socket.create_connection((small.host, small.http_port), raw.TIMEOUT_S)
            )
            connection.sendall(head.encode() + bytes(MIB - 1000))
        publish_honestly(small)
        assert peak_bytes(small) - before < BOUND_BYTES


def publish_honestly(server: WarrenServer) -> None:
    answer = httpx.post(
        f"{server.http_url}/endpoint/q/honest", content=b"honest", auth=AUTH, timeout=30
    )
    assert answer.status_code == 202, answer.text
