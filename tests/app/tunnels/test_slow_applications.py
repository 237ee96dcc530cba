"""Applications that send but do not read, or do nothing: what they may take is bounded."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from uvicorn.protocols.http.flow_control import FlowControl

from tests.support.websocket import PING, PONG, client_frame
from warrenmq.app.access.local_requests import CYCLE
from warrenmq.app.http.takeover import Successor, drained
from warrenmq.app.tunnels import socket as tunnel_socket
from warrenmq.app.tunnels.polls import LongPoll
from warrenmq.app.tunnels.socket import RequestSocket
from warrenmq.core.clock import ManualClock
from warrenmq.core.resources.partial_content import PartialContents
from warrenmq.core.wire.websocket import frame
from warrenmq.hub.tunnels.budget import ByteBudget
from warrenmq.hub.tunnels.pending_request import TunnelRequest, new_id
from warrenmq.hub.tunnels.registration import TunnelRegistration
from warrenmq.hub.tunnels.settings import TunnelSettings
from warrenmq.hub.tunnels.tunnel import Tunnel

TEXT = 1


class FullTransport:
    """Has its protocol pause at the first write; keeps what is written."""

    def __init__(self, protocol: Any) -> None:
        self.protocol = protocol
        self.written = bytearray()
        self.reads = True
        self.is_aborted = False
        protocol.connection_made(self)

    def write(self, data: bytes) -> None:
        if not self.written:
            self.protocol.pause_writing()
        self.written += data

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.is_aborted

    def get_write_buffer_size(self) -> int:
        return len(self.written)

    def abort(self) -> None:
        self.is_aborted = True
        self.protocol.connection_lost(None)

    def set_write_buffer_limits(self, high: int) -> None:
        """Is full at once."""


class QuickTransport(FullTransport):
    """Is never full."""

    def write(self, data: bytes) -> None:
        self.written += data


@pytest.fixture
def tunnel() -> Tunnel:
    registration = TunnelRegistration("slow", "", "", 60, 0.0)
    return Tunnel(registration, TunnelSettings(), ByteBudget(1_000), ManualClock())


def request() -> TunnelRequest:
    return TunnelRequest(b"GET / HTTP/1.1\r\n\r\n", "127.0.0.1:1", lambda _: None, is_head=False)


async def test_the_next_poll_waits_until_the_answer_was_read(tunnel: Tunnel) -> None:
    served = asyncio.Protocol()
    poll = LongPoll(tunnel, new_id(), "http://hub/private", [], Successor(lambda: served))
    transport = FullTransport(poll)
    poll.begin()
    tunnel.ask(request())
    assert transport.written.startswith(b"HTTP/1.1 200 OK")
    assert transport.protocol is poll
    poll.resume_writing()
    assert transport.protocol is served


async def test_a_poll_begins_after_earlier_answers_were_read() -> None:
    flow = FlowControl(cast(asyncio.Transport, None))
    scope = {"extensions": {CYCLE: {"cycle": SimpleNamespace(flow=flow)}}}
    await drained(scope)
    flow.pause_writing()
    waiting = asyncio.create_task(drained(scope))
    await asyncio.sleep(0)
    assert not waiting.done()
    flow.resume_writing()
    await waiting


async def test_replies_are_not_read_while_answers_to_bad_ones_are_unread(tunnel: Tunnel) -> None:
    socket = RequestSocket(tunnel, new_id(), "http://hub/private", PartialContents())
    transport = FullTransport(socket)
    socket.begin()
    socket.data_received(client_frame(TEXT, b"{}"))
    assert b'"error"' in transport.written
    assert not transport.reads
    socket.resume_writing()
    assert transport.reads


async def test_an_application_that_has_gone_without_a_close_gets_no_requests(
    tunnel: Tunnel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tunnel_socket, "SIGN_OF_LIFE_S", 0.001)
    there, gone = [
        RequestSocket(tunnel, new_id(), "http://hub/private", PartialContents()) for _ in range(2)
    ]
    transports = [QuickTransport(there), QuickTransport(gone)]
    there.begin()
    gone.begin()
    async with asyncio.timeout(10):
        while not transports[1].is_aborted:
            if frame(PING, b"") in transports[0].written:
                there.data_received(client_frame(PONG))
            await asyncio.sleep(0)
    assert (tunnel.poll_count, transports[0].is_aborted) == (1, False)
    there.connection_lost(None)
