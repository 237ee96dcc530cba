"""When a peer is read and when not, and what reaches its connection."""

from __future__ import annotations

import asyncio

import pytest

from tests.conformance import frames
from tests.support.amqp import method, names, publish
from warrenmq.core import broker as broker_module
from warrenmq.core.broker import TURN_MESSAGES
from warrenmq.core.clock import ManualClock
from warrenmq.core.proto import connection as connection_module
from warrenmq.core.proto.connection import Connection, State
from warrenmq.core.server import peer as peer_module
from warrenmq.core.server.listener import Listener
from warrenmq.core.server.peer import FULL_READ_BYTES, HIGH_WATER_BYTES

from .support import log_in, meet, meet_open, until


async def rounds(count: int = 5) -> None:
    """Lets the loop go round."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_connection_knows_who_is_there(listener: Listener) -> None:
    peer, transport = meet(listener)
    assert peer.connection.name == "127.0.0.1:50000 -> 127.0.0.1:5672"
    assert peer.connection.peer_is_loopback
    assert peer in listener.peers
    assert transport.high_water_bytes == HIGH_WATER_BYTES
    assert not meet(listener, "192.0.2.1")[0].connection.peer_is_loopback


async def test_what_comes_is_answered_in_the_same_call(listener: Listener) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(method(1, "Queue.Declare", queue="q"))
    assert names(transport.replies()) == ["Queue.DeclareOk"]


async def test_the_end_gives_everything_back(listener: Listener) -> None:
    peer, _ = meet_open(listener)
    peer.data_received(method(1, "Queue.Declare", queue="q", exclusive=True))
    peer.connection_lost(None)
    assert listener.peers == set()
    assert peer.connection.state is State.CLOSED
    assert listener.broker.vhosts["/"].queues == {}


async def test_the_time_is_taken_at_each_read(listener: Listener, clock: ManualClock) -> None:
    peer, _ = meet_open(listener)
    clock.advance(500)
    peer.data_received(frames.heartbeat())
    assert peer.connection.received_ms == clock.now_ms()


async def test_an_internal_error_behind_a_login_too(
    listener: Listener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What was sent together with the login is taken when the password was checked."""

    def failing(channel: object, payload: bytes) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(connection_module, "receive_method", failing)
    peer, transport = meet(listener)
    peer.data_received(frames.PROTOCOL_HEADER + log_in() + method(1, "Basic.Qos"))
    assert not transport.is_reading()
    await until(lambda: peer.connection.state is State.CLOSING)
    await rounds()
    assert [reply["reply_code"] for reply in transport.replies()[-1:]] == [541]
    assert transport.is_reading(), "for its close-ok"
    assert "internal error" in caplog.text


async def test_an_internal_error_ends_this_connection_alone(
    listener: Listener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    peer, transport = meet_open(listener)
    other, others = meet_open(listener)

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "_frame", fail)
        peer.data_received(frames.heartbeat())
    (close,) = transport.replies()
    assert (close["reply_code"], close["reply_text"]) == (
        541, "INTERNAL_ERROR - internal error, see the broker's log",
    )  # fmt: skip
    assert "ZeroDivisionError" in caplog.text
    other.data_received(method(1, "Basic.Qos"))
    assert names(others.replies()) == ["Basic.QosOk"]


async def test_what_a_turn_leaves_over_is_done_in_the_next_ones(listener: Listener) -> None:
    peer, _ = meet_open(listener)
    row = publish(1, b"x", routing_key="q") * (2 * TURN_MESSAGES)
    peer.data_received(method(1, "Queue.Declare", queue="q") + row)
    peer.data_received(method(1, "Basic.Consume", queue="q", no_ack=True))
    assert listener.broker.counters.delivered < 2 * TURN_MESSAGES
    await rounds(100)
    assert listener.broker.counters.delivered == 2 * TURN_MESSAGES


async def test_who_was_refused_in_silence_is_not_read(listener: Listener) -> None:
    """What it goes on sending until it is dropped would be kept."""
    peer, transport = meet(listener)
    peer.connection.certified = "nobody"
    peer.data_received(
        frames.PROTOCOL_HEADER + method(0, "Connection.StartOk", mechanism="EXTERNAL", response="")
    )
    assert not transport.is_reading()
    await rounds()
    assert not transport.is_reading()


# -- behind the end


async def test_what_comes_behind_close_is_discarded(listener: Listener) -> None:
    """Clients say close ahead of what they have buffered; unread, it would reset the socket."""
    peer, transport = meet_open(listener)
    peer.data_received(method(1, "Queue.Declare", queue="q") + method(0, "Connection.Close"))
    assert names(transport.replies()) == ["Queue.DeclareOk", "Connection.CloseOk"]
    assert transport.ended
    late = publish(1, bytes(FULL_READ_BYTES), routing_key="q")
    for _ in range(3):
        peer.data_received(late)
        assert not transport.is_reading(), "it leaves others their turn"
        await rounds()
        assert transport.is_reading()
    assert transport.replies() == []
    assert not transport.closed
    assert listener.broker.vhosts["/"].queues["q"].ready_count == 0


async def test_no_more_than_may_come_behind_close(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_module, "DISCARDED_MAX_BYTES", 1_000)
    peer, transport = meet_open(listener)
    peer.data_received(method(0, "Connection.Close"))
    peer.data_received(bytes(1_000))
    assert not transport.was_aborted()
    peer.data_received(b"!")
    assert transport.was_aborted()


# -- back-pressure


async def test_a_full_read_lets_everybody_else_have_a_turn(listener: Listener) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(publish(1, bytes(FULL_READ_BYTES // 2), routing_key="q") * 3)
    assert not transport.is_reading()
    await rounds(1)
    assert transport.is_reading()


async def test_a_small_read_does_not_wait(listener: Listener) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(publish(1, b"x", routing_key="q"))
    assert transport.is_reading()


async def test_a_publisher_ahead_of_its_consumers_rests(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "CROWDED_MESSAGES", 10)
    peer, transport = meet_open(listener)
    row = publish(1, b"x", routing_key="q") * 20
    peer.data_received(method(1, "Queue.Declare", queue="q") + row)
    assert transport.is_reading(), "a queue that only grows slows nobody"
    peer.data_received(
        method(1, "Basic.Qos", prefetch_count=1) + method(1, "Basic.Consume", queue="q")
    )
    peer.data_received(row)
    await rounds(1)
    assert not transport.is_reading(), "everybody else has two turns"
    await rounds(1)
    assert transport.is_reading()


async def test_who_does_not_read_gets_nothing_more(listener: Listener) -> None:
    peer, transport = meet_open(listener)
    publisher, _ = meet_open(listener)
    peer.data_received(
        method(1, "Queue.Declare", queue="q") + method(1, "Basic.Consume", queue="q")
    )
    transport.replies()
    peer.pause_writing()
    publisher.data_received(publish(1, b"x", routing_key="q"))
    assert transport.replies() == []
    peer.resume_writing()
    assert names(transport.replies()) == ["Basic.Deliver"]


async def test_who_does_not_read_may_acknowledge_but_not_ask(listener: Listener) -> None:
    """A slow consumer's acks and heartbeats are heard; answers would pile up."""
    peer, transport = meet_open(listener)
    peer.data_received(
        method(1, "Queue.Declare", queue="q")
        + method(1, "Basic.Consume", queue="q")
        + publish(1, b"x", routing_key="q")
    )
    peer.pause_writing()
    peer.data_received(frames.heartbeat() + method(1, "Basic.Ack", delivery_tag=1))
    assert transport.is_reading()
    assert listener.broker.vhosts["/"].queues["q"].unacked_count == 0
    transport.replies()
    peer.data_received(method(1, "Basic.Qos"))
    assert not transport.is_reading()
    assert transport.replies() == []
    peer.resume_writing()
    await rounds()
    assert names(transport.replies()) == ["Basic.QosOk"]
    assert transport.is_reading()


async def test_two_reasons_not_to_read_have_to_end_both(listener: Listener) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(publish(1, bytes(FULL_READ_BYTES // 2), routing_key="q") * 3)
    peer.pause_writing()
    peer.data_received(method(1, "Basic.Qos"))
    await rounds()
    assert not transport.is_reading()
    peer.resume_writing()
    await rounds()
    assert transport.is_reading()


async def test_what_is_left_of_a_read_waits_without_spinning(listener: Listener) -> None:
    """Answers fill the socket's buffer; until it has room the loop must find nothing to do."""
    peer, transport = meet_open(listener)
    peer.data_received(method(1, "Queue.Declare", queue="q"))
    peer.pause_writing()
    peer.data_received(method(1, "Basic.Qos") * 3)
    reads = 0
    read_on = peer.read_on

    def count() -> None:
        nonlocal reads
        reads += 1
        read_on()

    peer.read_on = count  # type: ignore[method-assign]
    await rounds(50)
    assert reads <= 2
    transport.replies()
    peer.resume_writing()
    await rounds()
    assert names(transport.replies()) == ["Basic.QosOk"] * 3
    assert transport.is_reading()


async def test_what_is_left_of_a_read_dies_with_the_socket(listener: Listener) -> None:
    peer, transport = meet_open(listener)
    peer.pause_writing()
    peer.data_received(method(1, "Basic.Qos") * 3)
    transport.abort()
    peer.connection_lost(None)
    assert not peer.connection.unfinished
    await rounds()


async def test_nothing_is_read_while_a_password_is_checked(listener: Listener) -> None:
    peer, transport = meet(listener)
    peer.data_received(frames.PROTOCOL_HEADER)
    peer.data_received(log_in())
    assert not transport.is_reading()
    while not transport.is_reading():
        await asyncio.sleep(0.001)
    assert names(transport.replies())[-1] == "Channel.OpenOk"


async def test_what_came_with_the_login_goes_on_after_it(
    listener: Listener, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if taking it has to rest on the way."""
    peer, transport = meet(listener)
    peer.data_received(frames.PROTOCOL_HEADER)
    peer.data_received(log_in() + method(1, "Queue.Declare") * 20)
    now_ms = clock.now_ms

    def hurry() -> int:
        clock.advance(2)
        return now_ms()

    monkeypatch.setattr(clock, "now_ms", hurry)
    while not transport.is_reading():
        await asyncio.sleep(0.001)
    assert names(transport.replies()).count("Queue.DeclareOk") == 20


async def test_a_refused_login_is_never_read_again(listener: Listener) -> None:
    peer, transport = meet(listener)
    peer.data_received(frames.PROTOCOL_HEADER)
    peer.data_received(log_in("wrong"))
    async with asyncio.timeout(10):
        await asyncio.gather(*listener._tasks - {max(listener._tasks, key=_is_watch)})
    assert not transport.is_reading()
    peer.abort()


def _is_watch(task: asyncio.Task[None]) -> bool:
    return "watch" in repr(task.get_coro())
