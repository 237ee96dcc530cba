"""HTTP from the careless: pipelines without end, slow bodies, callbacks that never finish."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest

from tests.conformance import raw
from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .support import MIB, assert_serves, forget_peak, open_files, peak_bytes, push, wait_for_files

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
    asked = ["amq.direct", "amq.topic", "nothing"] * 100
    requests = [
        f"GET /endpoint/x/{name} HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: {BASIC}\r\nAccept: application/json\r\n"
        for name in asked
    ]
    stream = "\r\n".join(requests) + "Connection: close\r\n\r\n"
    with dial(warren) as connection:
        connection.sendall(stream.encode())
        answers = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
    bodies = re.findall(r"\{.*\}", answers)
    assert len(bodies) == len(asked)
    for name, body in zip(asked, bodies, strict=True):
        assert f'"{name}"' in body if name != "nothing" else '"status":404' in body


def test_uploads_that_stop_half_way_keep_nobody_waiting(warren: WarrenServer) -> None:
    httpx.put(f"{warren.http_url}/endpoint/q/uploads", auth=AUTH)
    files = open_files(warren)
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
    wait_for_files(warren, files)
    with raw.connect(warren.amqp_port) as client:
        assert client.channel().drain("uploads") == [b"whole"]


class Endless:
    """A callback that confirms, and answers a delivery with `answer` until nobody listens."""

    def __init__(self, head: bytes, again: bytes) -> None:
        self._head, self._again = head, again
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.sent_bytes: list[int] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/"

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            request = connection.recv(65_536)
            if b"hub.challenge=" in request:
                challenge = request.split(b"hub.challenge=")[1].split(b"&")[0].split(b" ")[0]
                size = len(challenge)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
                connection.sendall(challenge)
                return
            sent = 0
            try:
                connection.sendall(self._head)
                while sent < 256 * MIB:
                    connection.sendall(self._again)
                    sent += len(self._again)
            except OSError:
                self.sent_bytes.append(sent)


ENDLESS = {
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 65_536),
    "chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"10000\r\n" + b"x" * 65_536 + b"\r\n",
    ),
    "head": (b"HTTP/1.1 200 OK\r\n", b"X-More: and more\r\n" * 1000),
    "header": (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * 65_536),
}


@pytest.fixture(params=ENDLESS.values(), ids=list(ENDLESS))
def endless(request: pytest.FixtureRequest) -> Iterator[Endless]:
    target = Endless(*request.param)
    yield target
    target.close()


def subscribe(server: WarrenServer, exchange: str, callback: str) -> None:
    form = {"hub.mode": "subscribe", "hub.callback": callback, "hub.topic": "k"}
    answer = httpx.post(f"{server.http_url}/subscribe/x/{exchange}", data=form, auth=AUTH)
    assert answer.status_code == 204, answer.text


def test_an_endless_answer_is_cut_off(
    warren: WarrenServer, endless: Endless, callback: Callback, request: pytest.FixtureRequest
) -> None:
    """What a callback says is worth a few kilobytes; the kernel's buffers hold some more."""
    exchange = f"for{abs(hash(request.node.name))}"
    httpx.put(f"{warren.http_url}/endpoint/x/{exchange}", auth=AUTH)
    subscribe(warren, exchange, endless.url)
    subscribe(warren, exchange, callback.url)
    url = f"{warren.http_url}/endpoint/x/{exchange}"
    answer = httpx.post(url, params={"hub.topic": "k"}, content=b"news", auth=AUTH)
    assert answer.status_code == 202
    wait_until(lambda: bool(endless.sent_bytes), 10.0, "the end of an endless answer")
    assert endless.sent_bytes[0] < 32 * MIB
    assert [delivery.body for delivery in callback.wait(1)] == [b"news"]
    assert_serves(warren)
