"""Peers: when they are read, paused and closed."""

from __future__ import annotations

import asyncio

import pytest

from tests.conformance import frames
from tests.support.amqp import method, names, publish
from warrenmq.core import broker as broker_module
from warrenmq.core.clock import ManualClock
from warrenmq.core.local.publisher import LocalPublisher
from warrenmq.core.message.model import Properties
from warrenmq.core.proto import frame_reader, handshake
from warrenmq.core.proto.connection import Connection
from warrenmq.core.proto.connection_state import ConnectionState
from warrenmq.core.proto.dispatch import receive_frame
from warrenmq.core.server import peer as peer_module
from warrenmq.core.server.listener import Listener
from warrenmq.core.server.peer import FULL_READ_BYTES
from warrenmq.core.turn import TURN_MESSAGES

from .support import log_in, meet, meet_open, rounds, until


async def test_an_internal_error_in_input_sent_with_the_login(
    listener: Listener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(connection: Connection, *frame: object) -> None:
        if connection.state is ConnectionState.OPEN:
            raise KeyError("a defect")
        receive_frame(connection, *frame)  # type: ignore[arg-type]

    monkeypatch.setattr(frame_reader, "receive_frame", failing)
    peer, transport = meet(listener)
    peer.data_received(frames.PROTOCOL_HEADER + log_in() + method(1, "Basic.Qos"))
    assert not transport.is_reading()
    await until(lambda: peer.connection.state is ConnectionState.CLOSING)
    await rounds()
    assert [reply["reply_code"] for reply in transport.replies()[-1:]] == [541]
    assert transport.is_reading(), "for its close-ok"
    assert "internal error" in caplog.text


async def test_an_internal_error_closes_one_connection(
    listener: Listener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    peer, transport = meet_open(listener)
    other, others = meet_open(listener)

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(frame_reader, "receive_frame", fail)
        peer.data_received(frames.heartbeat())
    (close,) = transport.replies()
    assert (close["reply_code"], close["reply_text"]) == (
        541, "INTERNAL_ERROR - internal error, see the broker's log",
    )  # fmt: skip
    assert "ZeroDivisionError" in caplog.text
    other.data_received(method(1, "Basic.Qos"))
    assert names(others.replies()) == ["Basic.QosOk"]


async def test_work_left_by_a_turn_is_done_in_later_turns(listener: Listener) -> None:
    peer, _ = meet_open(listener)
    row = publish(1, b"x", routing_key="q") * (2 * TURN_MESSAGES)
    peer.data_received(method(1, "Queue.Declare", queue="q") + row)
    peer.data_received(method(1, "Basic.Consume", queue="q", no_ack=True))
    assert listener.broker.statistics.total.deliver_get < 2 * TURN_MESSAGES
    await rounds(100)
    assert listener.broker.statistics.total.deliver_get == 2 * TURN_MESSAGES


async def test_a_client_to_be_dropped_is_not_read(listener: Listener) -> None:
    peer, transport = meet(listener)
    peer.connection.certified = "nobody"
    peer.data_received(
        frames.PROTOCOL_HEADER + method(0, "Connection.StartOk", mechanism="EXTERNAL", response="")
    )
    assert not transport.is_reading()
    await rounds()
    assert not transport.is_reading()


# -- behind the end


async def test_input_after_close_is_discarded(listener: Listener) -> None:
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


async def test_discarded_input_is_bounded(
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


async def test_a_full_read_pauses_for_one_turn(listener: Listener) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(publish(1, bytes(FULL_READ_BYTES // 2), routing_key="q") * 3)
    assert not transport.is_reading()
    await rounds(1)
    assert transport.is_reading()


@pytest.mark.parametrize("properties", [{}, {"user_id": "guest"}])
async def test_a_publisher_ahead_of_its_consumers_pauses_for_two_turns(
    listener: Listener, monkeypatch: pytest.MonkeyPatch, properties: dict[str, object]
) -> None:
    """In batches and one by one."""
    monkeypatch.setattr(broker_module, "CONSUMERS_BEHIND_MESSAGES", 10)
    peer, transport = meet_open(listener)
    row = publish(1, b"x", properties, routing_key="q") * 20
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
    LocalPublisher(listener.broker, listener.broker.vhosts["/"], None).publish(
        "", "q", Properties(), b"x"
    )
    peer.data_received(method(1, "Basic.Qos"))
    assert transport.is_reading(), "others are not slowed for it"


async def test_a_slow_reader_may_acknowledge_but_gets_no_replies(listener: Listener) -> None:
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


async def test_reading_resumes_when_all_pauses_are_over(listener: Listener) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(publish(1, bytes(FULL_READ_BYTES // 2), routing_key="q") * 3)
    peer.pause_writing()
    peer.data_received(method(1, "Basic.Qos"))
    await rounds()
    assert not transport.is_reading()
    peer.resume_writing()
    await rounds()
    assert transport.is_reading()


async def test_the_rest_of_a_read_waits_without_polling(listener: Listener) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(method(1, "Queue.Declare", queue="q"))
    peer.pause_writing()
    peer.data_received(method(1, "Basic.Qos") * 3)
    reads = 0
    resume_reading = peer.resume_reading

    def count() -> None:
        nonlocal reads
        reads += 1
        resume_reading()

    peer.resume_reading = count  # type: ignore[method-assign]
    await rounds(50)
    assert reads <= 2
    transport.replies()
    peer.resume_writing()
    await rounds()
    assert names(transport.replies()) == ["Basic.QosOk"] * 3
    assert transport.is_reading()


async def test_input_sent_with_the_login_is_handled_over_several_turns(
    listener: Listener, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
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


async def test_a_refused_login_is_never_read_again(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "LOGIN_DELAY_S", 0)
    peer, transport = meet(listener)
    peer.data_received(frames.PROTOCOL_HEADER)
    peer.data_received(log_in("wrong"))
    await until(transport.was_aborted)
    assert not transport.is_reading()
