"""Who is overdue, with time moved by hand."""

from __future__ import annotations

import pytest

from tests.conformance import frames
from tests.support.amqp import method, names, publish
from tests.support.steps import STEPS_A_TURN, count_steps
from warrenmq.core.clock import ManualClock
from warrenmq.core.proto.frame_progress import FRAME_TIMEOUT_S, PROGRESS_BYTES
from warrenmq.core.resources.alarms import Bounds, Reading
from warrenmq.core.server.listener import Listener
from warrenmq.core.server.peer import PauseReason
from warrenmq.core.server.watchdog import CLOSE_OK_S, DISCONNECTED_S, HANDSHAKE_S, look_after

from .support import FakeTransport, Remote, listening_socket, meet, meet_open, until


def wait(listener: Listener, clock: ManualClock, seconds: float) -> None:
    clock.advance(int(seconds * 1000))
    look_after(listener)


async def test_many_are_looked_at_in_slices(
    listener: Listener, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_steps(monkeypatch)
    transports = [meet(listener)[1] for _ in range(3 * STEPS_A_TURN)]
    clock.advance(HANDSHAKE_S * 1000 + 1)
    look_after(listener)
    ended = sum(transport.was_aborted() for transport in transports)
    assert 0 < ended <= 2 * STEPS_A_TURN
    while listener.broker.slices.busy:
        listener.turn()
        before, ended = ended, sum(transport.was_aborted() for transport in transports)
        assert ended - before <= STEPS_A_TURN
    assert ended == len(transports)


async def test_a_handshake_takes_a_bounded_time(
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


async def test_an_unfinished_frame_takes_a_bounded_time(
    listener: Listener, clock: ManualClock
) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(frames.heartbeat()[:4])
    wait(listener, clock, FRAME_TIMEOUT_S)
    assert not transport.was_aborted()
    wait(listener, clock, 0.001)
    assert transport.was_aborted()


async def test_other_frames_do_not_put_an_unfinished_one_off(
    listener: Listener, clock: ManualClock
) -> None:
    """One octet every few seconds holds a connection and its memory for ever."""
    peer, transport = meet_open(listener)
    slow = frames.frame(frames.METHOD, 1, bytes(100))
    for at in range(4):
        peer.data_received(slow[at : at + 1])
        wait(listener, clock, FRAME_TIMEOUT_S / 4)
    assert not transport.was_aborted()
    wait(listener, clock, 0.001)
    assert transport.was_aborted()


async def test_a_finished_frame_starts_the_time_anew(
    listener: Listener, clock: ManualClock
) -> None:
    peer, transport = meet_open(listener)
    for _ in range(5):
        peer.data_received(frames.heartbeat()[:4])
        wait(listener, clock, FRAME_TIMEOUT_S - 1)
        peer.data_received(frames.heartbeat()[4:])
    assert not transport.was_aborted()


@pytest.mark.parametrize("size", [100, 5_000, 100_000])
async def test_a_publisher_without_a_pause_is_never_late(
    listener: Listener, clock: ManualClock, size: int
) -> None:
    """Each of its reads ends within another message: something is unfinished all the time."""
    peer, transport = meet_open(listener)
    message = publish(1, bytes(size), routing_key="q")
    peer.data_received(message[: size // 2])
    for _ in range(5):
        wait(listener, clock, FRAME_TIMEOUT_S - 1)
        peer.data_received(message[size // 2 :] + message[: size // 2])
        assert peer.connection.has_partial_frame
    assert not transport.was_aborted()


@pytest.mark.parametrize(("step_bytes", "is_cut"), [(PROGRESS_BYTES, False), (4_000, True)])
async def test_a_large_frame_has_to_make_progress(
    listener: Listener, clock: ManualClock, step_bytes: int, is_cut: bool
) -> None:
    peer, transport = meet_open(listener)
    slow = frames.frame(frames.METHOD, 1, bytes(100_000))
    for at in range(0, 5 * step_bytes, step_bytes):
        peer.data_received(slow[at : at + step_bytes])
        wait(listener, clock, FRAME_TIMEOUT_S * 0.6)
    assert transport.was_aborted() is is_cut


async def test_close_ok_takes_a_bounded_time(listener: Listener, clock: ManualClock) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(frames.heartbeat(1))
    wait(listener, clock, CLOSE_OK_S)
    assert not transport.was_aborted()
    wait(listener, clock, 0.001)
    assert transport.was_aborted()


async def test_who_said_close_has_to_read_the_answer(
    listener: Listener, clock: ManualClock
) -> None:
    """The transport keeps what was not read, and would keep the socket with it."""
    peer, transport = meet_open(listener)
    clock.advance(1_000 * CLOSE_OK_S)
    listener.broker.tick()
    peer.data_received(method(0, "Connection.Close"))
    wait(listener, clock, CLOSE_OK_S)
    assert not transport.was_aborted()
    wait(listener, clock, 0.001)
    assert transport.was_aborted()


# -- heartbeats (AMQP 0-9-1 4.2.7)


async def test_a_heartbeat_goes_out_twice_in_the_interval(
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


async def test_other_traffic_makes_up_for_it(listener: Listener, clock: ManualClock) -> None:
    peer, transport = meet_open(listener, heartbeat_s=10)
    wait(listener, clock, 4)
    peer.data_received(method(1, "Basic.Qos"))
    wait(listener, clock, 4)
    assert names(transport.replies()) == ["Basic.QosOk"]


async def test_silence_for_two_intervals_is_the_end(
    listener: Listener, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    _, transport = meet_open(listener, heartbeat_s=10)
    wait(listener, clock, 20)
    assert not transport.was_aborted()
    wait(listener, clock, 0.001)
    assert transport.was_aborted()
    assert "missed heartbeats: nothing came for 20 s" in caplog.text


async def test_any_octet_counts(listener: Listener, clock: ManualClock) -> None:
    peer, transport = meet_open(listener, heartbeat_s=4)
    for _ in range(10):
        wait(listener, clock, 7)
        peer.data_received(frames.heartbeat())
    assert not transport.was_aborted()


async def test_none_were_asked_for(listener: Listener, clock: ManualClock) -> None:
    _, transport = meet_open(listener)
    wait(listener, clock, 100_000)
    assert not transport.was_aborted()
    assert transport.replies() == []


async def test_who_is_not_read_is_not_blamed_while_it_takes_what_it_is_sent(
    listener: Listener, clock: ManualClock
) -> None:
    """Its heartbeats may well stand in the socket, behind what we don't read."""
    peer, transport = meet_open(listener, heartbeat_s=10)
    peer.pause_writing()
    peer.data_received(method(1, "Basic.Qos"))
    for waiting_bytes in range(900_000, 0, -100_000):
        transport.waiting_bytes = waiting_bytes
        wait(listener, clock, 15)
    assert not transport.was_aborted()
    wait(listener, clock, 21)
    assert transport.was_aborted()


async def test_everybody_is_looked_at(listener: Listener, clock: ManualClock) -> None:
    transports: list[FakeTransport] = [meet(listener)[1] for _ in range(3)]
    _, fine = meet_open(listener)
    wait(listener, clock, HANDSHAKE_S + 1)
    assert [transport.was_aborted() for transport in transports] == [True] * 3
    assert not fine.was_aborted()


async def test_an_unfinished_message_takes_a_bounded_time(
    listener: Listener, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Whole frames of it, heartbeats, and messages on other channels put nothing off."""
    peer, transport = meet_open(listener)
    peer.data_received(method(2, "Channel.Open") + publish(1, bytes(9), routing_key="q")[:-1])
    peer.data_received(b"\xce" + method(1, "Basic.Publish", routing_key="q"))
    wait(listener, clock, FRAME_TIMEOUT_S / 2)
    peer.data_received(frames.heartbeat() + publish(2, b"whole", routing_key="q"))
    wait(listener, clock, FRAME_TIMEOUT_S / 2)
    assert not transport.was_aborted()
    wait(listener, clock, 0.001)
    assert transport.was_aborted()
    assert "a message was not finished within 10 s" in caplog.text


async def test_a_message_that_goes_on_may_take_long(listener: Listener, clock: ManualClock) -> None:
    peer, transport = meet_open(listener)
    message = publish(1, bytes(4 * PROGRESS_BYTES), frame_max=PROGRESS_BYTES + 8, routing_key="q")
    step = PROGRESS_BYTES + 8
    for at in range(0, len(message), step):
        wait(listener, clock, FRAME_TIMEOUT_S - 1)
        peer.data_received(message[at : at + step])
    assert not transport.was_aborted()


async def test_a_message_that_is_not_read_on_is_not_late(
    listener: Listener, clock: ManualClock
) -> None:
    peer, transport = meet_open(listener)
    message = publish(1, bytes(100_000), frame_max=4_096, routing_key="q")
    peer.data_received(message[:50_000])
    listener.broker.alarms.bounds = Bounds(disk_free=1000)
    listener.broker.alarms.measure(Reading(disk_free_bytes=0))
    peer.data_received(message[50_000:])
    assert peer.is_blocked
    wait(listener, clock, FRAME_TIMEOUT_S + 1)
    assert not transport.was_aborted()


@pytest.mark.parametrize("is_alone", [True, False])
async def test_who_does_not_read_keeps_others_waiting_for_a_bounded_time(
    listener: Listener, clock: ManualClock, is_alone: bool
) -> None:
    """Not read for want of its own reading, it could hold the room of its user for good."""
    listener.broker.alarms.bounds = Bounds(memory=400_000)
    peers = [meet_open(listener) for _ in range(1 if is_alone else 2)]
    message = publish(1, bytes(80_000), frame_max=8_008, routing_key="q")
    for peer, _ in peers:
        peer.data_received(message[:20_000])
    reading_nothing, transport = peers[0]
    reading_nothing.pause_writing()
    reading_nothing._pause(PauseReason.WRITE)
    wait(listener, clock, FRAME_TIMEOUT_S)
    wait(listener, clock, 1)
    assert transport.was_aborted() is not is_alone


async def test_who_hung_up_while_it_was_not_read_is_ended(
    listener: Listener, clock: ManualClock
) -> None:
    """Its end is behind what nobody reads; what it holds would stay as long as the alarm."""
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
