"""Connections through proxies over real sockets (PROXY protocol)."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import frames
from tests.support.amqp import make_broker, method
from tests.support.certificates import Authority
from tests.support.proxy import LOCAL, v1, v2
from warrenmq.core.clock import SystemClock
from warrenmq.core.server import proxy_listener as module
from warrenmq.core.server.certificates import CertificateFiles, Certificates
from warrenmq.core.server.listener import Listener

from .support import READY_S, Remote, listening_socket, log_in

FAR = v1("TCP4 192.0.2.7 198.51.100.1 50000 5672")
NEAR = v2((("127.0.0.1", 50_000), ("127.0.0.1", 5672)))
KNOWN_REFUSAL: dict[str, Any] = {"capabilities": {"authentication_failure_close": True}}


class Server:
    """A listener that takes PROXY headers of some addresses."""

    def __init__(self, listener: Listener, port: int) -> None:
        self.listener = listener
        self.port = port
        self.remotes: list[Remote] = []

    @property
    def names(self) -> list[str]:
        return [peer.connection.name for peer in self.listener.peers]

    async def dial(self, *sent: bytes, tls: ssl.SSLContext | None = None) -> Remote:
        remote = await Remote.dial(self.port)
        self.remotes.append(remote)
        for piece in sent:
            remote.send(piece)
            await remote.writer.drain()
        if tls is not None:
            await remote.writer.start_tls(tls, server_hostname="localhost")
        return remote

    async def log_in(self, *sent: bytes, tls: ssl.SSLContext | None = None) -> Remote:
        remote = await self.dial(*sent, tls=tls)
        remote.send(frames.PROTOCOL_HEADER + log_in(**KNOWN_REFUSAL))
        return remote


Open = Callable[..., Any]


@pytest.fixture
def make_server() -> Open:
    @asynccontextmanager
    async def opened(
        proxies: str = "127.0.0.0/8", tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[Server]:
        broker = make_broker()
        broker.clock = SystemClock()
        listener = Listener(broker, proxies=[ip_network(proxies)])
        listening = listening_socket()
        await listener.start([])
        await listener.serve([listening], tls)
        server = Server(listener, listening.getsockname()[1])
        try:
            yield server
        finally:
            for peer in list(listener.peers):
                peer.abort()
            await listener.stop()
            for remote in server.remotes:
                await remote.close()

    return opened


@pytest.fixture
async def server(make_server: Open) -> AsyncIterator[Server]:
    async with make_server() as found:
        yield found


async def octets(remote: Remote) -> bytes:
    """All that comes until the end."""
    async with asyncio.timeout(READY_S):
        try:
            return await remote.reader.read()
        except ConnectionResetError:
            return b""


async def test_a_local_header_is_the_proxy_itself(server: Server) -> None:
    remote = await server.log_in(LOCAL)
    await remote.next("Channel.OpenOk")
    assert server.names[0].startswith("127.0.0.1:")


@pytest.mark.parametrize(
    "sent",
    [frames.PROTOCOL_HEADER, b"PROXY nonsense\r\n", b"PROXY " + b"x" * 200, b"\x16\x03\x01\x00"],
    ids=["amqp", "nonsense", "endless", "tls"],
)
async def test_a_listed_proxy_must_send_the_header(
    server: Server, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert await octets(await server.dial(sent)) == b""
    assert "proxy connection 127.0.0.1: " in caplog.text
    assert server.names == []


async def test_the_connection_ends_within_the_header(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    remote = await server.dial(FAR[:20])
    remote.writer.write_eof()
    assert await octets(remote) == b""
    assert "it ended within its PROXY header" in caplog.text


async def test_a_second_header_is_refused(server: Server) -> None:
    assert await octets(await server.dial(FAR + NEAR)) == frames.PROTOCOL_HEADER


async def test_tls_follows_the_header(make_server: Open, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = Certificates(CertificateFiles(*authority.issue("localhost"))).context()
    async with make_server(tls=tls) as server:
        remote = await server.log_in(NEAR, tls=authority.client_context())
        await remote.next("Channel.OpenOk")
        assert server.names == ["127.0.0.1:50000 -> 127.0.0.1:5672"]
        remote.send(method(0, "Connection.Close"))
        await remote.next("Connection.CloseOk")
        assert await octets(await server.dial(NEAR, b"AMQP no TLS")) == b""


async def test_accepting_continues_after_errors(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_REST_S", 0)
    loop = asyncio.get_running_loop()
    failures = [OSError(errno.EMFILE, "Too many open files")]
    accept = loop.sock_accept

    async def fail_once(listening: socket.socket) -> Any:
        if failures:
            raise failures.pop()
        return await accept(listening)

    monkeypatch.setattr(loop, "sock_accept", fail_once)
    for _ in range(2):  # the first is accepted by the call that waits already
        await (await server.log_in(NEAR)).next("Channel.OpenOk")
    assert "could not be accepted: [Errno 24] Too many open files" in caplog.text


async def test_stop_ends_connections_without_a_header(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEADER_S", 3_600)
    waiting = await server.dial(FAR[:20])
    inside = await server.log_in(NEAR)
    await inside.next("Channel.OpenOk")
    stopping = asyncio.create_task(server.listener.stop())
    assert (await inside.next("Connection.Close"))["reply_code"] == 320
    assert await octets(waiting) == b""
    inside.send(method(0, "Connection.CloseOk"))
    await stopping
    assert server.names == []
    with pytest.raises(ConnectionRefusedError):
        await Remote.dial(server.port)
