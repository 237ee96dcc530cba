"""HTTP from the careless: pipelines without end, slow bodies."""

from __future__ import annotations

import re
import socket

import httpx

from tests.conformance import raw
from tests.support.server import WarrenServer

from .support import (
    MIB,
    assert_serves,
    forget_peak,
    open_sockets,
    peak_bytes,
    push,
    wait_for_sockets,
)

AUTH = ("guest", "guest")
BASIC = "Basic Z3Vlc3Q6Z3Vlc3Q="
BOUND_BYTES = 64 * MIB


def dial(server: WarrenServer) -> socket.socket:
    return socket.create_connection((server.host, server.http_port), raw.TIMEOUT_S)


def test_pipelined_requests_do_not_pile_up(warren: WarrenServer) -> None:
    with dial(warren) as connection:
        before = forget_peak(warren)
        push(connection, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 1000, 8 * MIB)
        assert peak_bytes(warren) - before < BOUND_BYTES
        assert_serves(warren)


def test_pipelined_requests_are_answered_in_order(warren: WarrenServer) -> None:
    paths = ["amq.direct", "amq.topic", "nothing"] * 100
    requests = [
        f"GET /endpoint/x/{name} HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: {BASIC}\r\nAccept: application/json\r\n"
        for name in paths
    ]
    stream = "\r\n".join(requests) + "Connection: close\r\n\r\n"
    with dial(warren) as connection:
        connection.sendall(stream.encode())
        answers = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
    bodies = re.findall(r"\{.*\}", answers)
    assert len(bodies) == len(paths)
    for name, body in zip(paths, bodies, strict=True):
        assert f'"{name}"' in body if name != "nothing" else '"status":404' in body


def test_long_paths_are_not_kept(warren: WarrenServer) -> None:
    head = (
        b"GET /%04d" + b"x" * 15_000 + b" HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n"
    )
    with dial(warren) as connection:
        before = forget_peak(warren)
        for number in range(2_000):
            connection.sendall(head % number)
            while not connection.recv(65_536).rstrip().endswith(b"}"):
                pass
        assert peak_bytes(warren) - before < BOUND_BYTES // 4


def test_uploads_that_stop_half_way_keep_nobody_waiting(warren: WarrenServer) -> None:
    httpx.put(f"{warren.http_url}/endpoint/q/uploads", auth=AUTH)
    sockets = open_sockets(warren)
    head = (
        b"POST /endpoint/q/uploads HTTP/1.1\r\nHost: localhost\r\n"
        b"Authorization: %b\r\nContent-Length: 100000\r\n\r\nhalf" % BASIC.encode()
    )
    connections = [dial(warren) for _ in range(200)]
    for number, connection in enumerate(connections):
        connection.sendall(head if number % 2 else head[:20])
    answer = httpx.post(f"{warren.http_url}/endpoint/q/uploads", content=b"whole", auth=AUTH)
    assert answer.status_code == 202
    for connection in connections:
        connection.close()
    wait_for_sockets(warren, sockets)
    with raw.connect(warren.amqp_port) as client:
        assert client.channel().drain("uploads") == [b"whole"]
