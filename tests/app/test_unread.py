"""Clients that do not read what they were sent: it does not stay in memory."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from warrenmq.app.http import unread
from warrenmq.app.http.listen import listen, port_of
from warrenmq.app.http.server import HttpServer
from warrenmq.app.http.takeover import Successor
from warrenmq.app.live.connection import LiveConnection
from warrenmq.app.tunnels.polls import LongPoll
from warrenmq.app.tunnels.streams import RequestEvents
from warrenmq.core.clock import ManualClock
from warrenmq.hub.live.forms import EVENT_STREAM
from warrenmq.hub.tunnels.budget import ByteBudget
from warrenmq.hub.tunnels.pending_request import TunnelRequest, new_id
from warrenmq.hub.tunnels.registration import TunnelRegistration
from warrenmq.hub.tunnels.settings import TunnelSettings
from warrenmq.hub.tunnels.tunnel import Tunnel

LONG = bytes(20 * 1024 * 1024)
"""More than the kernel takes for one connection."""
SHORT_BYTES = 20_000
"""So short that a protocol may still write."""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "UNREAD_S", 0.05)


def connected(port: int) -> socket.socket:
    """A client that takes little."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    found.connect(("127.0.0.1", port))
    return found


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def answer(scope: Any, receive: Any, send: Any) -> None:
    length = (b"content-length", b"%d" % len(LONG))
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": LONG})


@pytest.mark.parametrize("requests", [1, 3])
async def test_an_answer(requests: int) -> None:
    """And those to requests behind it, which wait for it."""
    listeners = listen("127.0.0.1", 0, "http")
    server = HttpServer(answer, max_body_bytes=1, drain_s=1)
    await server.start(listeners)
    connections = server.server_state.connections
    with connected(port_of(listeners)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: hub\r\n\r\n" * requests)
        await until(lambda: bool(connections))
        await until(lambda: not connections)
    await server.stop()


def tunnel() -> Tunnel:
    registration = TunnelRegistration("slow", "", "", 60, 0.0)
    return Tunnel(registration, TunnelSettings(), ByteBudget(2 * len(LONG)), ManualClock())


def request(message: bytes = LONG) -> TunnelRequest:
    return TunnelRequest(message, "127.0.0.1:1", lambda _: None, is_head=False)


def long_poll() -> asyncio.Protocol:
    """Gets a long request."""
    found = tunnel()
    poll = LongPoll(found, new_id(), "http://hub/private", [], Successor(asyncio.Protocol))
    found.ask(request())
    return poll


def request_stream(message: bytes = LONG) -> RequestEvents:
    found = tunnel()
    found.ask(request(message))
    return RequestEvents(found, new_id(), "http://hub/private")


class EndedReader(LiveConnection):
    def __init__(self) -> None:
        reader = SimpleNamespace(form=EVENT_STREAM, lost=lambda: None, full=lambda: None)
        super().__init__(cast(Any, reader))

    def begin(self) -> None:
        self.write(LONG)
        self.close()


@pytest.mark.parametrize("make", [long_poll, request_stream, EndedReader])
async def test_a_connection_that_was_taken_over(make: Callable[[], Any]) -> None:
    protocol = make()
    server = await asyncio.get_running_loop().create_server(lambda: protocol, "127.0.0.1", 0)
    with connected(server.sockets[0].getsockname()[1]):
        await until(lambda: hasattr(protocol, "_transport"))
        transport = protocol._transport
        protocol.begin()
        assert transport.get_write_buffer_size()
        await until(lambda: not transport.get_write_buffer_size())
    server.close()


async def read_to_the_last(client: socket.socket, transport: Any) -> None:
    """Reads until the buffer is short enough for a protocol to write again, but not empty."""
    client.setblocking(False)
    short_bytes, _ = transport.get_write_buffer_limits()
    while transport.get_write_buffer_size() > short_bytes:
        with contextlib.suppress(BlockingIOError):
            client.recv(2048)
        await asyncio.sleep(0)


@pytest.mark.parametrize("size", [SHORT_BYTES, 200_000])
async def test_the_rest_of_an_answer_that_ends_its_connection(size: int) -> None:
    async def answer_once(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(size)})

    listeners = listen("127.0.0.1", 0, "http")
    listeners[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2048)
    server = HttpServer(answer_once, max_body_bytes=1, drain_s=1)
    await server.start(listeners)
    connections = cast(set[Any], server.server_state.connections)
    with connected(port_of(listeners)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n")
        await until(lambda: any(one.transport.is_closing() for one in connections))
        (protocol,) = connections
        await read_to_the_last(client, protocol.transport)
        await until(lambda: not connections)
    await server.stop()


async def test_the_rest_of_a_request_stream() -> None:
    protocol = request_stream(bytes(200_000))
    server = await asyncio.get_running_loop().create_server(lambda: protocol, "127.0.0.1", 0)
    server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2048)
    with connected(server.sockets[0].getsockname()[1]) as client:
        await until(lambda: hasattr(protocol, "_transport"))
        protocol.begin()
        protocol.end(None)
        await read_to_the_last(client, protocol._transport)
        await until(lambda: not protocol._transport.get_write_buffer_size())
    server.close()


async def test_one_that_reads_slowly_goes_on() -> None:
    sizes = [500_000, 400_000, 400_000, 300_000, 300_000, 0]
    ended: list[str] = []
    transport = SimpleNamespace(
        get_write_buffer_size=lambda: sizes.pop(0), abort=lambda: ended.append("aborted")
    )
    unread.UnreadTimer().start(cast(Any, transport))
    await until(lambda: not sizes)
    await asyncio.sleep(0)
    assert ended == []
