"""Timeouts of peers, on a manual clock."""

from __future__ import annotations

import pytest

from tests.conformance import frames
from tests.support.amqp import method, names, publish
from tests.support.steps import STEPS_A_TURN, count_steps
from warrenmq.core.clock import ManualClock
from warrenmq.core.proto.frame_progress import FRAME_TIMEOUT_S, PROGRESS_BYTES
from warrenmq.core.resources.alarms import Bounds, Reading
from warrenmq.core.server.listener import Listener
from warrenmq.core.server.watchdog import CLOSE_OK_S, DISCONNECTED_S, HANDSHAKE_S, check_peers

from .support import FakeTransport, Remote, listening_socket, meet, meet_open, rounds, until


def wait(listener: Listener, clock: ManualClock, seconds: float) -> None:
    clock.advance(int(seconds * 1000))
    check_peers(listener)


def wait_for_abort(
    listener: Listener, clock: ManualClock, transport: FakeTransport, seconds: float
) -> None:
    """The peer is aborted after so long, and not before."""
    wait(listener, clock, seconds)
    assert not transport.was_aborted()
    wait(listener, clock, 0.001)
    assert transport.was_aborted()


async def test_peers_are_checked_in_slices(
    listener: Listener, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_steps(monkeypatch)
    transports = [meet(listener)[1] for _ in range(3 * STEPS_A_TURN)]
    clock.advance(HANDSHAKE_S * 1000 + 1)
    check_peers(listener)
    ended = sum(transport.was_aborted() for transport in transports)
    assert 0 < ended <= 2 * STEPS_A_TURN
    while listener.broker.slices.busy:
        await rounds(1)
        before, ended = ended, sum(transport.was_aborted() for transport in transports)
        assert ended - before <= STEPS_A_TURN
    assert ended == len(transports)


async def test_the_handshake_times_out(
    listener: Listener, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    silent, begun = meet(listener), meet(listener)
    begun[0].data_received(frames.PROTOCOL_HEADER)
    wait(listener, clock, HANDSHAKE_S)
    assert not silent[1].was_aborted()
    wait(listener, clock, 0.001)
    assert silent[1].was_aborted()
    assert begun[1].was_aborted()
    assert "no handshake within 10 s" in caplog.text


async def test_an_incomplete_frame_times_out(listener: Listener, clock: ManualClock) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(frames.heartbeat()[:4])
    wait_for_abort(listener, clock, transport, FRAME_TIMEOUT_S)


async def test_single_octets_do_not_extend_the_timeout(
    listener: Listener, clock: ManualClock
) -> None:
    peer, transport = meet_open(listener)
    slow = frames.frame(frames.METHOD, 1, bytes(100))
    for at in range(4):
        peer.data_received(slow[at : at + 1])
        wait(listener, clock, FRAME_TIMEOUT_S / 4)
    assert not transport.was_aborted()
    wait(listener, clock, 0.001)
    assert transport.was_aborted()


@pytest.mark.parametrize("size", [100, 5_000, 100_000])
async def test_a_continuous_publisher_never_times_out(
    listener: Listener, clock: ManualClock, size: int
) -> None:
    peer, transport = meet_open(listener)
    message = publish(1, bytes(size), routing_key="q")
    peer.data_received(message[: size // 2])
    for _ in range(5):
        wait(listener, clock, FRAME_TIMEOUT_S - 1)
        peer.data_received(message[size // 2 :] + message[: size // 2])
        assert peer.connection.reader.has_partial_frame
    assert not transport.was_aborted()


@pytest.mark.parametrize(("step_bytes", "is_cut"), [(PROGRESS_BYTES, False), (4_000, True)])
async def test_a_large_frame_needs_progress(
    listener: Listener, clock: ManualClock, step_bytes: int, is_cut: bool
) -> None:
    peer, transport = meet_open(listener)
    slow = frames.frame(frames.METHOD, 1, bytes(100_000))
    for at in range(0, 5 * step_bytes, step_bytes):
        peer.data_received(slow[at : at + step_bytes])
        wait(listener, clock, FRAME_TIMEOUT_S * 0.6)
    assert transport.was_aborted() is is_cut


async def test_close_ok_times_out(listener: Listener, clock: ManualClock) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(frames.heartbeat(1))
    wait_for_abort(listener, clock, transport, CLOSE_OK_S)


async def test_a_client_that_does_not_read_close_ok_times_out(
    listener: Listener, clock: ManualClock
) -> None:
    peer, transport = meet_open(listener)
    clock.advance(1_000 * CLOSE_OK_S)
    listener.broker.tick()
    peer.data_received(method(0, "Connection.Close"))
    wait_for_abort(listener, clock, transport, CLOSE_OK_S)


# -- heartbeats (AMQP 0-9-1 4.2.7)


async def test_heartbeats_are_sent_twice_per_interval(
    listener: Listener, clock: ManualClock
) -> None:
    _, transport = meet_open(listener, heartbeat_s=10)
    wait(listener, clock, 4)
    assert transport.replies() == []
    wait(listener, clock, 1)
    assert names(transport.replies()) == ["Heartbeat"]
    wait(listener, clock, 4)
    assert transport.replies() == []
    wait(listener, clock, 1)
    assert names(transport.replies()) == ["Heartbeat"]


async def test_missed_heartbeats_end_the_connection(
    listener: Listener, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    _, transport = meet_open(listener, heartbeat_s=10)
    wait_for_abort(listener, clock, transport, 20)
    assert "missed heartbeats: nothing came for 20 s" in caplog.text


async def test_a_paused_peer_is_alive_while_it_reads(
    listener: Listener, clock: ManualClock
) -> None:
    peer, transport = meet_open(listener, heartbeat_s=10)
    peer.pause_writing()
    peer.data_received(method(1, "Basic.Qos"))
    for waiting_bytes in range(900_000, 0, -100_000):
        transport.waiting_bytes = waiting_bytes
        wait(listener, clock, 15)
    assert not transport.was_aborted()
    wait(listener, clock, 21)
    assert transport.was_aborted()


async def test_an_incomplete_message_times_out(
    listener: Listener, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(method(2, "Channel.Open") + publish(1, bytes(9), routing_key="q")[:-1])
    peer.data_received(b"\xce" + method(1, "Basic.Publish", routing_key="q"))
    wait(listener, clock, FRAME_TIMEOUT_S / 2)
    peer.data_received(frames.heartbeat() + publish(2, b"whole", routing_key="q"))
    wait_for_abort(listener, clock, transport, FRAME_TIMEOUT_S / 2)
    assert "message timed out: less than" in caplog.text


async def test_a_message_that_progresses_does_not_time_out(
    listener: Listener, clock: ManualClock
) -> None:
    peer, transport = meet_open(listener)
    message = publish(1, bytes(4 * PROGRESS_BYTES), frame_max=PROGRESS_BYTES + 8, routing_key="q")
    step = PROGRESS_BYTES + 8
    for at in range(0, len(message), step):
        wait(listener, clock, FRAME_TIMEOUT_S - 1)
        peer.data_received(message[at : at + step])
    assert not transport.was_aborted()


@pytest.mark.parametrize("is_alone", [True, False])
async def test_a_paused_peer_that_keeps_others_waiting_times_out(
    listener: Listener, clock: ManualClock, is_alone: bool
) -> None:
    listener.broker.alarms.bounds = Bounds(memory=400_000)
    peers = [meet_open(listener) for _ in range(1 if is_alone else 2)]
    message = publish(1, bytes(80_000), frame_max=8_008, routing_key="q")
    for peer, _ in peers:
        peer.data_received(message[:20_000])
    reading_nothing, transport = peers[0]
    reading_nothing.pause_writing()
    reading_nothing.data_received(method(2, "Channel.Open"))
    wait(listener, clock, FRAME_TIMEOUT_S)
    wait(listener, clock, 1)
    assert transport.was_aborted() is not is_alone


async def test_a_disconnected_peer_that_is_not_read_is_ended(
    listener: Listener, clock: ManualClock
) -> None:
    listening = listening_socket()
    port = listening.getsockname()[1]
    await listener.start([listening])
    gone, there = await Remote.enter(port), await Remote.enter(port)
    listener.broker.alarms.bounds = Bounds(disk_free=1000)
    listener.broker.alarms.measure(Reading(disk_free_bytes=0))
    for remote in (gone, there):
        remote.send(publish(1, b"held back", routing_key="q"))
    await until(lambda: sum(peer.is_blocked for peer in listener.peers) == 2)
    await gone.close()
    for _ in range(2):
        assert len(listener.peers) == 2
        wait(listener, clock, DISCONNECTED_S)
    await until(lambda: len(listener.peers) == 1)
    await there.close()
    await listener.stop()
    await until(lambda: not listener.peers)
