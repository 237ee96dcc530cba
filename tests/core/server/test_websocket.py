"""A peer behind a WebSocket: what goes through, what ends it, and who waits for whom."""

from __future__ import annotations

import asyncio

import pytest

from tests.conformance import frames
from tests.support.amqp import Reply, method, names, publish, read
from tests.support.websocket import BINARY, CLOSE, PING, PONG, client_frame
from warrenmq.core.clock import ManualClock
from warrenmq.core.proto.connection import State
from warrenmq.core.resources.alarms import Bounds, Reading
from warrenmq.core.server import peer
from warrenmq.core.server.listener import Listener
from warrenmq.core.server.peer import FULL_READ_BYTES, HIGH_WATER_BYTES
from warrenmq.core.server.watchdog import CLOSE_OK_S, look_after
from warrenmq.core.server.websocket import WebSocket
from warrenmq.core.wire import websocket as wire
from warrenmq.core.wire.proxy import Relayed

from .support import FakeTransport, log_in

TEXT = 1


class Browser:
    """A client, and what it sees of the messages that come."""

    def __init__(self, listener: Listener, relayed: Relayed | None = None) -> None:
        listener.broker.users.check("guest", "guest", loopback=True)
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


async def rounds(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture
async def browser(listener: Listener) -> Browser:
    browser = Browser(listener)
    browser.enter()
    return browser


def is_closed(browser: Browser) -> bool:
    """Asked anew each time."""
    return browser.socket.closed


async def test_each_frame_is_a_message(listener: Listener) -> None:
    browser = Browser(listener)
    browser.send(frames.PROTOCOL_HEADER, log_in())
    kinds, payloads = zip(*browser.messages(), strict=True)
    assert set(kinds) == {BINARY}
    assert [names(read(payload)) for payload in payloads] == [
        ["Connection.Start"], ["Connection.Tune"], ["Connection.OpenOk"], ["Channel.OpenOk"],
    ]  # fmt: skip


async def test_content_goes_both_ways_however_it_is_cut(browser: Browser) -> None:
    body = bytes(range(256)) * 1_000
    sent = method(1, "Queue.Declare", queue="q") + publish(1, body, routing_key="q")
    browser.send(*(sent[at : at + 7_777] for at in range(0, len(sent), 7_777)))
    browser.send(method(1, "Basic.Get", queue="q"))
    assert [reply.body for reply in browser.replies()] == [b"", body]


async def test_messages_arrive_octet_by_octet(listener: Listener) -> None:
    browser = Browser(listener)
    for octet in client_frame(BINARY, frames.PROTOCOL_HEADER + log_in()):
        browser.server.data_received(bytes((octet,)))
    assert names(browser.replies())[-1] == "Channel.OpenOk"


async def test_another_protocol_gets_our_header_and_the_end(listener: Listener) -> None:
    browser = Browser(listener)
    browser.send(b"GET / HTTP/1.1\r\n")
    assert browser.messages() == [(BINARY, frames.PROTOCOL_HEADER), (CLOSE, b"\x03\xe8")]


async def test_who_is_there(listener: Listener) -> None:
    assert Browser(listener).connection.peer_is_loopback
    (first,) = listener.peers
    first.connection_lost(None)
    assert not Browser(listener, Relayed()).connection.peer_is_loopback


# -- pings


async def test_a_ping_is_answered(browser: Browser) -> None:
    browser.server.data_received(client_frame(PING, b"here?"))
    assert browser.messages() == [(PONG, b"here?")]


async def test_pongs_do_not_pile_up(browser: Browser) -> None:
    browser.server.data_received(client_frame(PING, b"1") + client_frame(PING, b"2"))
    assert browser.messages() == [(PONG, b"2")]
    browser.socket.waiting_bytes = HIGH_WATER_BYTES
    browser.server.data_received(client_frame(PING, b"3"))
    assert browser.messages() == []


# -- the end


async def test_amqp_closes_first(browser: Browser) -> None:
    browser.send(method(0, "Connection.Close"))
    (_, ok), close = browser.messages()
    assert names(read(ok)) == ["Connection.CloseOk"]
    assert close == (CLOSE, b"\x03\xe8")
    assert not browser.socket.is_closing(), "the client may say close too"
    browser.server.data_received(client_frame(CLOSE, b"\x03\xe8"))
    assert browser.socket.closed
    assert browser.messages() == []


async def test_the_client_says_close(browser: Browser, listener: Listener) -> None:
    browser.send(method(1, "Queue.Declare", queue="q", exclusive=True))
    browser.messages()
    browser.server.data_received(client_frame(CLOSE, b"\x03\xe9gone"))
    assert browser.messages() == [(CLOSE, b"\x03\xe9")]
    assert browser.socket.closed
    assert browser.connection.state is State.CLOSED
    assert listener.broker.vhosts["/"].queues == {}
    assert listener.broker.connections == {}


async def test_what_came_before_a_close_counts(browser: Browser, listener: Listener) -> None:
    """Though it has to wait, here for a client that does not read."""
    browser.server.pause_writing()
    asked = method(1, "Queue.Declare", queue="q") * 3
    browser.server.data_received(client_frame(BINARY, asked) + client_frame(CLOSE, b"\x03\xe8"))
    browser.send(method(1, "Queue.Declare", queue="behind the close"))
    assert not browser.socket.closed
    browser.server.resume_writing()
    await rounds()
    assert is_closed(browser)
    assert names(browser.replies()) == ["Queue.DeclareOk"] * 3
    assert list(listener.broker.vhosts["/"].queues) == ["q"]


async def test_what_came_before_a_close_waits_for_the_end_of_an_alarm(
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
async def test_what_breaks_the_rules(
    listener: Listener, sent: bytes, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    browser = Browser(listener)
    browser.server.data_received(sent)
    ((opcode, payload),) = browser.messages()
    assert (opcode, int.from_bytes(payload[:2], "big")) == (CLOSE, code)
    assert browser.socket.closed
    assert browser.connection.state is State.CLOSED
    assert payload[2:].decode() in caplog.text
    browser.send(frames.PROTOCOL_HEADER)
    assert browser.messages() == []


async def test_an_error_is_told_before_the_close(browser: Browser) -> None:
    browser.send(frames.heartbeat(1))
    assert names(browser.replies()) == ["Connection.Close"]
    browser.send(method(0, "Connection.CloseOk"))
    assert browser.messages() == [(CLOSE, b"\x03\xe8")]


async def test_who_never_says_close_is_cut_off(
    browser: Browser, listener: Listener, clock: ManualClock
) -> None:
    browser.send(method(0, "Connection.Close"))
    clock.advance(CLOSE_OK_S * 1000 + 1)
    look_after(listener)
    assert browser.socket.was_aborted()


async def test_what_comes_behind_close_is_discarded(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "DISCARDED_MAX_BYTES", 3 * FULL_READ_BYTES)
    browser.send(method(0, "Connection.Close"))
    for _ in range(3):
        browser.send(bytes(FULL_READ_BYTES))
        await rounds()
        assert browser.socket.is_reading()
    assert not browser.socket.closed
    browser.send(b"!")
    assert is_closed(browser)


async def test_a_socket_that_is_lost(browser: Browser, listener: Listener) -> None:
    browser.server.connection_lost(None)
    assert listener.peers == set()
    assert listener.broker.connections == {}


# -- back-pressure


async def test_the_buffer_is_a_peers(browser: Browser) -> None:
    assert browser.socket.high_water_bytes == HIGH_WATER_BYTES
    browser.send(method(1, "Queue.Declare", queue="q"), method(1, "Basic.Consume", queue="q"))
    browser.server.pause_writing()
    browser.messages()
    browser.send(publish(1, b"x", routing_key="q"))
    assert browser.messages() == []
    browser.server.resume_writing()
    await rounds()
    assert names(browser.replies()) == ["Basic.Deliver"]


async def test_a_full_read_lets_everybody_else_have_a_turn(browser: Browser) -> None:
    browser.server.data_received(client_frame(PING, bytes(125)) * (FULL_READ_BYTES // 125))
    assert not browser.socket.is_reading()
    await rounds(1)
    assert browser.socket.is_reading()


async def test_many_small_frames_take_several_turns(
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


async def test_who_publishes_in_an_alarm_is_not_read(browser: Browser, listener: Listener) -> None:
    alarms = listener.broker.alarms
    alarms.bounds = Bounds(disk_free=1000)
    alarms.measure(Reading(disk_free_bytes=0))
    browser.send(publish(1, b"x", routing_key="q"))
    assert not browser.socket.is_reading()
    assert browser.connection.blocked
    alarms.measure(Reading(disk_free_bytes=10_000))
    listener.turn()
    await rounds()
    assert browser.socket.is_reading()
