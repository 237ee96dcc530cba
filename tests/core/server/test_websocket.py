"""AMQP over WebSocket: closing, pings, and back-pressure."""

from __future__ import annotations

import pytest

from tests.conformance import frames
from tests.support.amqp import Reply, method, names, publish, read
from tests.support.websocket import BINARY, CLOSE, PING, PONG, client_frame
from warrenmq.core.clock import ManualClock
from warrenmq.core.proto.connection_state import ConnectionState
from warrenmq.core.resources.alarms import Bounds, Reading
from warrenmq.core.server.listener import Listener
from warrenmq.core.server.peer import FULL_READ_BYTES, HIGH_WATER_BYTES
from warrenmq.core.server.watchdog import CLOSE_OK_S, check_peers
from warrenmq.core.server.websocket import WebSocket
from warrenmq.core.wire import websocket as wire
from warrenmq.core.wire.proxy import Relayed

from .support import FakeTransport, log_in, rounds

TEXT = 1


class Browser:
    """A client, and what it sees of the messages that come."""

    def __init__(self, listener: Listener, relayed: Relayed | None = None) -> None:
        listener.broker.users.passwords.check("guest", "guest", loopback=True)
        self.socket = FakeTransport()
        self.server = WebSocket(listener, relayed)
        self.server.connection_made(self.socket)
        (self.peer,) = listener.peers
        self.connection = self.peer.connection

    def send(self, *payloads: bytes) -> None:
        """In one read, a message each."""
        self.server.data_received(b"".join(client_frame(BINARY, payload) for payload in payloads))

    def messages(self) -> list[tuple[int, bytes]]:
        """Opcode and payload of what has come since the last time; nothing is masked."""
        data, self.socket.written = self.socket.written, b""
        found, at = [], 0
        while at < len(data):
            assert data[at] & 0xF0 == 0x80, "each message is one frame"
            size, head = data[at + 1], 2
            if size > 125:
                head = 4 if size == 126 else 10
                size = int.from_bytes(data[at + 2 : at + head], "big")
            found.append((data[at] & 0x0F, data[at + head : at + head + size]))
            at += head + size
        return found

    def replies(self) -> list[Reply]:
        return read(b"".join(payload for opcode, payload in self.messages() if opcode == BINARY))

    def enter(self) -> None:
        self.send(frames.PROTOCOL_HEADER, log_in())
        assert names(self.replies())[-1] == "Channel.OpenOk"


@pytest.fixture
async def browser(listener: Listener) -> Browser:
    browser = Browser(listener)
    browser.enter()
    return browser


def is_closed(browser: Browser) -> bool:
    """Asked anew each time."""
    return browser.socket.closed


async def test_caller_of(listener: Listener) -> None:
    assert Browser(listener).connection.peer_is_loopback
    (first,) = listener.peers
    first.connection_lost(None)
    assert not Browser(listener, Relayed()).connection.peer_is_loopback


# -- pings


async def test_only_the_last_ping_is_answered(browser: Browser) -> None:
    browser.server.data_received(client_frame(PING, b"1") + client_frame(PING, b"2"))
    assert browser.messages() == [(PONG, b"2")]
    browser.socket.waiting_bytes = HIGH_WATER_BYTES
    browser.server.data_received(client_frame(PING, b"3"))
    assert browser.messages() == []


# -- the end


async def test_a_close_frame_ends_the_connection(browser: Browser, listener: Listener) -> None:
    browser.send(method(1, "Queue.Declare", queue="q", exclusive=True))
    browser.messages()
    browser.server.data_received(client_frame(CLOSE, b"\x03\xe9gone"))
    assert browser.messages() == [(CLOSE, b"\x03\xe9")]
    assert browser.socket.closed
    assert browser.connection.state is ConnectionState.CLOSED
    assert listener.broker.vhosts["/"].queues == {}
    assert listener.broker.connections == {}


async def test_input_before_a_close_frame_is_handled(browser: Browser, listener: Listener) -> None:
    browser.server.pause_writing()
    declares = method(1, "Queue.Declare", queue="q") * 3
    browser.server.data_received(client_frame(BINARY, declares) + client_frame(CLOSE, b"\x03\xe8"))
    browser.send(method(1, "Queue.Declare", queue="behind the close"))
    assert not browser.socket.closed
    browser.server.resume_writing()
    await rounds()
    assert is_closed(browser)
    assert names(browser.replies()) == ["Queue.DeclareOk"] * 3
    assert list(listener.broker.vhosts["/"].queues) == ["q"]


async def test_input_before_a_close_frame_waits_for_the_alarm(
    browser: Browser, listener: Listener
) -> None:
    browser.send(method(1, "Queue.Declare", queue="q"))
    alarms = listener.broker.alarms
    alarms.bounds = Bounds(disk_free=1000)
    alarms.measure(Reading(disk_free_bytes=0))
    sent = client_frame(BINARY, publish(1, b"x", routing_key="q"))
    browser.server.data_received(sent + client_frame(CLOSE, b"\x03\xe8"))
    assert not browser.socket.closed
    alarms.measure(Reading(disk_free_bytes=10_000))
    listener.turn()
    await rounds()
    assert is_closed(browser)
    assert listener.broker.vhosts["/"].queues["q"].ready_count == 1


@pytest.mark.parametrize(
    ("sent", "code"),
    [(client_frame(TEXT, b"AMQP"), 1003), (frames.PROTOCOL_HEADER, 1002)],
    ids=["text", "no WebSocket"],
)
async def test_protocol_errors_close_the_websocket(
    listener: Listener, sent: bytes, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    browser = Browser(listener)
    browser.server.data_received(sent)
    ((opcode, payload),) = browser.messages()
    assert (opcode, int.from_bytes(payload[:2], "big")) == (CLOSE, code)
    assert browser.socket.closed
    assert browser.connection.state is ConnectionState.CLOSED
    assert payload[2:].decode() in caplog.text
    browser.send(frames.PROTOCOL_HEADER)
    assert browser.messages() == []


async def test_a_client_that_sends_no_close_frame_times_out(
    browser: Browser, listener: Listener, clock: ManualClock
) -> None:
    browser.send(method(0, "Connection.Close"))
    clock.advance(CLOSE_OK_S * 1000 + 1)
    check_peers(listener)
    assert browser.socket.was_aborted()


# -- back-pressure


async def test_a_full_read_pauses_for_one_turn(browser: Browser) -> None:
    browser.server.data_received(client_frame(PING, bytes(125)) * (FULL_READ_BYTES // 125))
    assert not browser.socket.is_reading()
    await rounds(1)
    assert browser.socket.is_reading()


async def test_many_small_frames_are_handled_over_several_turns(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "_FRAMES_AT_ONCE", 10)
    row = method(1, "Basic.Qos") * 4
    browser.server.data_received(
        b"".join(client_frame(BINARY, row[at : at + 1]) for at in range(len(row)))
    )
    assert browser.messages() == []
    assert not browser.socket.is_reading()
    while not browser.socket.is_reading():
        await rounds(1)
    assert names(browser.replies()) == ["Basic.QosOk"] * 4
