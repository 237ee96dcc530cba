"""Connections that proxies pass on, over real sockets (PROXY protocol)."""

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
from tests.support.proxy import LOCAL, V2_START, v1, v2
from warrenmq.core.clock import SystemClock
from warrenmq.core.server import proxy_listener as gate
from warrenmq.core.server.certificates import CertificateFiles, Certificates
from warrenmq.core.server.listener import Listener

from .support import READY_S, Remote, listening_socket, log_in

FAR = v1("TCP4 192.0.2.7 198.51.100.1 50000 5672")
NEAR = v2((("127.0.0.1", 50_000), ("127.0.0.1", 5672)))
KNOWN_REFUSAL: dict[str, Any] = {"capabilities": {"authentication_failure_close": True}}


class Site:
    """A listener that takes the word of some addresses."""

    def __init__(self, listener: Listener, port: int) -> None:
        self.listener = listener
        self.port = port
        self.remotes: list[Remote] = []

    @property
    def names(self) -> list[str]:
        return [peer.connection.name for peer in self.listener.peers]

    async def knock(self, *sent: bytes, tls: ssl.SSLContext | None = None) -> Remote:
        remote = await Remote.knock(self.port)
        self.remotes.append(remote)
        for piece in sent:
            remote.send(piece)
            await remote.writer.drain()
        if tls is not None:
            await remote.writer.start_tls(tls, server_hostname="localhost")
        return remote

    async def log_in(self, *sent: bytes, tls: ssl.SSLContext | None = None) -> Remote:
        remote = await self.knock(*sent, tls=tls)
        remote.send(frames.PROTOCOL_HEADER + log_in(**KNOWN_REFUSAL))
        return remote


Open = Callable[..., Any]


@pytest.fixture
def make_site() -> Open:
    @asynccontextmanager
    async def opened(
        proxies: str = "127.0.0.0/8", tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[Site]:
        broker = make_broker()
        broker.clock = SystemClock()
        listener = Listener(broker, proxies=[ip_network(proxies)])
        listening = listening_socket()
        if tls is None:
            await listener.start([listening])
        else:
            await listener.start([])
            await listener.start_tls([listening], tls)
        site = Site(listener, listening.getsockname()[1])
        try:
            yield site
        finally:
            for peer in list(listener.peers):
                peer.abort()
            await listener.stop()
            for remote in site.remotes:
                await remote.close()

    return opened


@pytest.fixture
async def site(make_site: Open) -> AsyncIterator[Site]:
    async with make_site() as found:
        yield found


async def octets(remote: Remote) -> bytes:
    """All that comes until the end."""
    async with asyncio.timeout(READY_S):
        try:
            return await remote.reader.read()
        except ConnectionResetError:
            return b""


async def test_the_client_is_who_the_proxy_says(site: Site) -> None:
    remote = await site.log_in(FAR)
    close = await remote.next("Connection.Close")
    assert close["reply_code"] == 403, "guest is let in from this machine only"
    assert site.names == ["192.0.2.7:50000 -> 198.51.100.1:5672"]


async def test_a_client_on_this_machine(site: Site) -> None:
    remote = await site.log_in(NEAR)
    await remote.next("Channel.OpenOk")
    assert site.names == ["127.0.0.1:50000 -> 127.0.0.1:5672"]


async def test_the_proxys_own_connections(site: Site) -> None:
    """It looks whether we live: whoever that is, it is the proxy itself."""
    remote = await site.log_in(LOCAL)
    await remote.next("Channel.OpenOk")
    assert site.names[0].startswith("127.0.0.1:")


@pytest.mark.parametrize(
    "header",
    [v1("UNKNOWN"), v1("UNKNOWN 127.0.0.1 127.0.0.1 1 1"), V2_START + b"\x21\x00\x00\x00"],
)
async def test_of_whom_nothing_is_known_is_not_of_this_machine(site: Site, header: bytes) -> None:
    remote = await site.log_in(header)
    assert (await remote.next("Connection.Close"))["reply_code"] == 403


async def test_a_header_octet_by_octet(site: Site) -> None:
    remote = await site.log_in(*(bytes((octet,)) for octet in NEAR))
    await remote.next("Channel.OpenOk")


@pytest.mark.parametrize(
    "sent",
    [frames.PROTOCOL_HEADER, b"PROXY nonsense\r\n", b"PROXY " + b"x" * 200, b"\x16\x03\x01\x00"],
    ids=["amqp", "nonsense", "endless", "tls"],
)
async def test_a_proxy_has_to_say_it(
    site: Site, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Also by its own machine's programs: a header that may be left out is no use."""
    assert await octets(await site.knock(sent)) == b""
    assert "connection of the proxy 127.0.0.1: " in caplog.text
    assert site.names == []


async def test_a_proxy_that_hangs_up(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    remote = await site.knock(FAR[:20])
    remote.writer.write_eof()
    assert await octets(remote) == b""
    assert "it ended within its PROXY header" in caplog.text


async def test_a_header_takes_a_bounded_time(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(gate, "HEADER_S", 0.05)
    assert await octets(await site.knock(FAR[:20])) == b""
    assert "no PROXY header within" in caplog.text


async def test_nobody_else_may_say_it(make_site: Open) -> None:
    async with make_site("192.0.2.0/24") as site:
        await (await site.log_in()).next("Channel.OpenOk")
        assert await octets(await site.knock(FAR)) == frames.PROTOCOL_HEADER


async def test_a_second_header_is_a_wrong_protocol(site: Site) -> None:
    assert await octets(await site.knock(FAR + NEAR)) == frames.PROTOCOL_HEADER


async def test_tls_stands_behind_the_header(make_site: Open, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = Certificates(CertificateFiles(*authority.issue("localhost"))).context()
    async with make_site(tls=tls) as site:
        remote = await site.log_in(NEAR, tls=authority.client_context())
        await remote.next("Channel.OpenOk")
        assert site.names == ["127.0.0.1:50000 -> 127.0.0.1:5672"]
        remote.send(method(0, "Connection.Close"))
        await remote.next("Connection.CloseOk")
        assert await octets(await site.knock(NEAR, b"AMQP no TLS")) == b""


async def test_it_goes_on_when_there_are_no_files_left(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(gate, "_REST_S", 0)
    loop = asyncio.get_running_loop()
    failures = [OSError(errno.EMFILE, "Too many open files")]
    accept = loop.sock_accept

    async def fail_once(listening: socket.socket) -> Any:
        if failures:
            raise failures.pop()
        return await accept(listening)

    monkeypatch.setattr(loop, "sock_accept", fail_once)
    for _ in range(2):  # the first is accepted by the call that waits already
        await (await site.log_in(NEAR)).next("Channel.OpenOk")
    assert "could not be accepted: [Errno 24] Too many open files" in caplog.text


async def test_the_end_cuts_those_who_are_at_the_gate(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "HEADER_S", 3_600)
    waiting = await site.knock(FAR[:20])
    inside = await site.log_in(NEAR)
    await inside.next("Channel.OpenOk")
    stopping = asyncio.create_task(site.listener.stop())
    assert (await inside.next("Connection.Close"))["reply_code"] == 320
    assert await octets(waiting) == b""
    inside.send(method(0, "Connection.CloseOk"))
    await stopping
    assert site.names == []
    with pytest.raises(ConnectionRefusedError):
        await Remote.knock(site.port)
