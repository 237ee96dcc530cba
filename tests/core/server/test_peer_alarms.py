"""Peers that publish during an alarm: reading, heartbeats, closing."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.conformance import frames
from tests.support.amqp import make_broker, method, names, publish
from warrenmq.core.clock import ManualClock
from warrenmq.core.resources.alarms import Bounds, Reading
from warrenmq.core.server.listener import Listener
from warrenmq.core.server.peer import Peer
from warrenmq.core.server.watchdog import check_peers

from .support import FakeTransport, Remote, listening_socket, log_in, meet, until

CAPABLE: dict[str, Any] = {"capabilities": {"connection.blocked": True}}


def raise_alarm(listener: Listener) -> None:
    listener.broker.alarms.bounds = Bounds(disk_free=1000)
    listener.broker.alarms.measure(Reading(disk_free_bytes=0))


def end_alarm(listener: Listener) -> None:
    listener.broker.alarms.measure(Reading(disk_free_bytes=10_000))
    listener.turn()


def meet_capable(listener: Listener, heartbeat_s: int = 0) -> tuple[Peer, FakeTransport]:
    listener.broker.users.passwords.check("guest", "guest", loopback=True)
    peer, transport = meet(listener)
    peer.data_received(frames.PROTOCOL_HEADER)
    peer.data_received(log_in(heartbeat_s=heartbeat_s, **CAPABLE))
    peer.data_received(method(1, "Queue.Declare", queue="q"))
    transport.replies()
    return peer, transport


def ready(listener: Listener) -> int:
    return listener.broker.vhosts["/"].queues["q"].ready_count


async def test_a_blocked_peer_is_not_read_until_the_alarm_is_over(listener: Listener) -> None:
    peer, transport = meet_capable(listener)
    raise_alarm(listener)
    peer.data_received(frames.heartbeat())
    assert transport.is_reading()
    peer.data_received(publish(1, b"one", routing_key="q"))
    assert names(transport.replies()) == ["Connection.Blocked"]
    assert not transport.is_reading()
    assert peer.is_blocked
    await asyncio.sleep(0)
    assert not transport.is_reading()
    end_alarm(listener)
    await until(transport.is_reading)
    assert names(transport.replies()) == ["Connection.Unblocked"]
    assert ready(listener) == 1
    assert not peer.is_paused


async def test_the_end_of_a_turn_does_not_resume_a_blocked_peer(listener: Listener) -> None:
    peer, transport = meet_capable(listener)
    raise_alarm(listener)
    peer.data_received(publish(1, bytes(10_000), routing_key="q") * 20)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not transport.is_reading()
    end_alarm(listener)
    await until(transport.is_reading)
    assert ready(listener) == 20


async def test_writing_does_not_resume_a_blocked_peer(listener: Listener) -> None:
    peer, transport = meet_capable(listener)
    raise_alarm(listener)
    peer.data_received(publish(1, b"one", routing_key="q"))
    peer.pause_writing()
    peer.resume_writing()
    await asyncio.sleep(0)
    assert not transport.is_reading()
    assert ready(listener) == 0


async def test_a_blocked_peer_gets_heartbeats_and_need_not_send_any(
    listener: Listener, clock: ManualClock
) -> None:
    peer, transport = meet_capable(listener, heartbeat_s=10)
    raise_alarm(listener)
    peer.data_received(publish(1, b"one", routing_key="q"))
    transport.replies()
    for _ in range(10):
        clock.advance(10_000)
        check_peers(listener)
    assert not transport.was_aborted()
    assert names(transport.replies()) == ["Heartbeat"] * 10
    end_alarm(listener)
    await until(transport.is_reading)
    clock.advance(20_001)
    check_peers(listener)
    assert transport.was_aborted()


async def test_a_blocked_peer_may_leave_a_message_incomplete(
    listener: Listener, clock: ManualClock
) -> None:
    peer, transport = meet_capable(listener)
    raise_alarm(listener)
    peer.data_received(publish(1, b"one", routing_key="q")[:-3])
    clock.advance(60_000)
    check_peers(listener)
    assert not transport.was_aborted()


async def test_a_publish_sent_with_the_login_is_blocked(listener: Listener) -> None:
    raise_alarm(listener)
    peer, transport = meet(listener)
    peer.data_received(
        frames.PROTOCOL_HEADER
        + log_in(**CAPABLE)
        + method(1, "Queue.Declare", queue="q")
        + publish(1, b"one", routing_key="q")
    )
    await until(lambda: peer.is_blocked)
    assert not transport.is_reading()
    end_alarm(listener)
    await until(transport.is_reading)
    assert ready(listener) == 1


async def test_a_stop_reads_the_close_ok_of_blocked_peers(clock: ManualClock) -> None:
    listener = Listener(make_broker(clock=clock))
    listening = listening_socket()
    await listener.start([listening])
    raise_alarm(listener)
    remote = await Remote.enter(listening.getsockname()[1], **CAPABLE)
    remote.send(publish(1, b"one", routing_key="q") * 3)
    await remote.next("Connection.Blocked")
    stopping = asyncio.create_task(listener.stop())
    await remote.next("Connection.Close")
    remote.send(method(0, "Connection.CloseOk"))
    (peer,) = listener.peers
    await until(lambda: peer.connection.is_closed)
    await stopping
    await remote.close()
