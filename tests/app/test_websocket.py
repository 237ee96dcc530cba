"""Upgrades on the HTTP port: who is let through, over real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.conformance import frames
from tests.core.server.support import log_in
from tests.support.amqp import make_broker, read
from tests.support.websocket import BINARY, client_frame
from warrenmq.app.access.local_requests import LocalHosts
from warrenmq.app.access.origins import AllowedOrigins
from warrenmq.app.http.listen import listen, port_of
from warrenmq.app.http.server import HttpServer
from warrenmq.app.http.websocket import Upgrades
from warrenmq.core.clock import SystemClock
from warrenmq.core.server.listener import Listener

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
"""The example of RFC 6455 1.3."""
OFFER = {
    "Host": "localhost",
    "Connection": "keep-alive, Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": KEY,
}


class Application:
    """Answers everything with 200, `/slow` when it may."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            await self.go.wait()
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


class Site:
    def __init__(self, application: Application, listener: Listener, port: int) -> None:
        self.application = application
        self.listener = listener
        self.port = port

    async def exchange(self, *parts: bytes) -> bytes:
        """Sends the parts; gives what comes until the end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
            async with asyncio.timeout(10):
                return await reader.read()
        finally:
            writer.close()

    async def asked(self, changes: dict[str, str | None], path: str = "/") -> bytes:
        """The answer to an upgrade whose fields differ from a right one, and all behind it."""
        return await self.exchange(request(changes, path), GOODBYE)


GOODBYE = client_frame(8, b"\x03\xe8")


def request(changes: dict[str, str | None] | None = None, path: str = "/") -> bytes:
    fields = {**OFFER, **(changes or {})}
    lines = [f"GET {path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    broker = make_broker()
    broker.clock = SystemClock()
    broker.users.passwords.check("guest", "guest", loopback=True)
    listener = Listener(broker)
    await listener.start([])
    sockets = listen("127.0.0.1", 0, "http")
    origins = AllowedOrigins(["http://localhost:15672/hub"], "https://app.example.org")
    application = Application()
    server = HttpServer(
        application,
        max_body_bytes=1000,
        drain_s=1,
        upgrades=Upgrades(
            listener,
            origins,
            LocalHosts("burrow"),
            is_http_path=lambda path: path.startswith(b"/api/"),
        ),
    )
    await server.start(sockets)
    yield Site(application, listener, port_of(sockets))
    await listener.stop()
    await server.stop()


def head(answer: bytes) -> list[bytes]:
    return answer.partition(b"\r\n\r\n")[0].split(b"\r\n")


def refusal(answer: bytes, status: int) -> str:
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["detail"])


# -- taken


async def test_response_to_an_upgrade(site: Site) -> None:
    answer = await site.asked({"Sec-WebSocket-Protocol": "mqtt, amqp"}, "/any/path?at=all")
    assert head(answer) == [
        b"HTTP/1.1 101 Switching Protocols",
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Accept: " + ACCEPT,
        b"Sec-WebSocket-Protocol: amqp",
    ]
    assert answer.endswith(b"\r\n\r\n\x88\x02\x03\xe8")


async def test_without_a_subprotocol_none_is_named(site: Site) -> None:
    answer = await site.asked({})
    assert head(answer)[0] == b"HTTP/1.1 101 Switching Protocols"
    assert b"Sec-WebSocket-Protocol" not in answer


async def test_frames_sent_with_the_request_are_read(site: Site) -> None:
    spoken = client_frame(BINARY, frames.PROTOCOL_HEADER + log_in()) + GOODBYE
    sent = request() + spoken
    for cut in (len(sent), len(request()), len(request()) + 3, 10):
        answer = await site.exchange(sent[:cut], sent[cut:])
        assert b"en_US" in answer
        assert answer.endswith(b"\x88\x02\x03\xe8")


async def test_accepted_after_complete_requests(site: Site) -> None:
    plain = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(plain)
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    await reader.readuntil(b"\r\n\r\n")
    writer.write(request() + GOODBYE)
    assert await reader.readline() == b"HTTP/1.1 101 Switching Protocols\r\n"
    writer.close()


async def test_an_upgrade_in_a_pipeline_is_answered_as_a_plain_request(site: Site) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n" + request())
    other = await asyncio.open_connection("127.0.0.1", site.port)
    other[1].write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await other[0].readuntil(b"\r\n\r\n")  # by then the first were read
    other[1].close()
    site.application.go.set()
    for _ in range(2):
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        await reader.readuntil(b"\r\n\r\n")
    assert site.listener.peers == set()
    writer.close()


async def test_clients_get_a_close_when_the_server_stops(site: Site) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"ws://127.0.0.1:{site.port}/") as socket,
    ):
        await socket.send_bytes(frames.PROTOCOL_HEADER + log_in())
        for _ in range(4):
            await socket.receive_bytes(timeout=10)
        stopping = asyncio.create_task(site.listener.stop())
        (close,) = read(await socket.receive_bytes(timeout=10))
        assert (close.name, close["reply_code"]) == ("Connection.Close", 320)
        assert refusal(await site.asked({}), 503) == "the server is stopping"
        ok = frames.method("Connection.CloseOk")
        await socket.send_bytes(frames.frame(frames.METHOD, 0, ok))
        assert (await socket.receive(timeout=10)).type is aiohttp.WSMsgType.CLOSE
        await stopping


# -- refused


REFUSED: list[tuple[dict[str, str | None], int, str]] = [
    ({"Sec-WebSocket-Version": "8"}, 426, "Sec-WebSocket-Version is '8'; only 13 is supported"),
    ({"Sec-WebSocket-Version": None}, 426, "Sec-WebSocket-Version is ''"),
    ({"Sec-WebSocket-Key": None}, 400, "must be 16 bytes in base64"),
    ({"Sec-WebSocket-Key": "c2hvcnQ="}, 400, "must be 16 bytes in base64"),
    ({"Sec-WebSocket-Key": "?" * 24}, 400, "must be 16 bytes in base64"),
    ({"Sec-WebSocket-Key": "\xce" + KEY[1:]}, 400, "must be 16 bytes in base64"),
    ({"Sec-WebSocket-Protocol": "mqtt"}, 400, "is 'mqtt'; only amqp is supported"),
    ({"Sec-WebSocket-Protocol": "AMQPWSB10"}, 400, "is 'AMQPWSB10'; only amqp is supported"),
    ({"Origin": "https://evil.example"}, 403, "a page of https://evil.example may not connect"),
    ({"Host": None}, 400, "exactly one Host field"),
    ({"Origin": "null"}, 403, "a page of null may not connect"),
]


async def test_bad_upgrades_are_refused(site: Site) -> None:
    for changes, status, reason in REFUSED:
        answer = await site.asked(changes)
        assert reason in refusal(answer, status)
        assert (b"Sec-WebSocket-Version: 13" in head(answer)) is (status == 426)


async def test_refused_at_paths_that_http_serves(site: Site) -> None:
    answer = await site.asked({}, "/api/overview?columns=node")
    assert "no WebSocket at '/api/overview'" in refusal(answer, 404)
    assert "connect to '/' for AMQP over WebSocket" in refusal(answer, 404)


async def test_repeated_fields_are_refused(site: Site) -> None:
    twice = request({"Sec-WebSocket-Key": f"{KEY}\r\nSec-WebSocket-Key: {KEY}"})
    assert "is given 2 times" in refusal(await site.exchange(twice), 400)


async def test_other_requests_are_served_by_http(site: Site) -> None:
    for sent in (
        request({"Upgrade": "h2c"}),
        request({"Connection": "keep-alive"}),
        request().replace(b"GET", b"POST", 1),
        request().replace(b"HTTP/1.1", b"HTTP/1.0", 1),
    ):
        closing = sent.replace(b"Host:", b"Connection: close\r\nHost:", 1)
        assert (await site.exchange(closing)).startswith(b"HTTP/1.1 200 OK")
