"""Who publishes what goes to disk waits while the disk is behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest

from tests.support.amqp import make_broker, method, names, publish
from tests.support.manual_store import ManualStore
from warrenmq.core.clock import ManualClock
from warrenmq.core.server.listener import Listener
from warrenmq.core.server.watchdog import look_after
from warrenmq.core.store.port import BEHIND_BYTES

from .support import meet_open, until

LASTS = {"delivery_mode": 2}


@pytest.fixture
def store() -> ManualStore:
    store = ManualStore()
    store.paging = False
    return store


@pytest.fixture
async def listener(store: ManualStore, clock: ManualClock) -> AsyncIterator[Listener]:
    listener = Listener(make_broker(store=store, clock=clock))
    await listener.start([])
    yield listener
    for peer in list(listener.peers):
        peer.connection_lost(None)
    await listener.stop()


async def test_a_publisher_waits_until_half_of_it_is_written(
    listener: Listener, store: ManualStore
) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(method(1, "Queue.Declare", queue="q", durable=True))
    store.behind_bytes = BEHIND_BYTES
    peer.data_received(publish(1, b"one", LASTS, routing_key="q"))
    assert transport.is_reading()
    store.behind_bytes = BEHIND_BYTES + 1
    peer.data_received(publish(1, b"two", LASTS, routing_key="q"))
    assert not transport.is_reading()
    store.behind_bytes = BEHIND_BYTES // 2 + 1
    store.commit()
    assert peer.is_blocked
    store.behind_bytes = BEHIND_BYTES // 2
    store.commit()
    await until(transport.is_reading)
    assert not peer.is_paused
    peer.data_received(publish(1, b"three", LASTS, routing_key="q"))
    assert transport.is_reading()


async def test_others_do_not_wait(listener: Listener, store: ManualStore) -> None:
    """Transient messages, persistent ones that go to no durable queue, and consumers."""
    peer, transport = meet_open(listener)
    peer.data_received(
        method(1, "Queue.Declare", queue="durable", durable=True)
        + method(1, "Queue.Declare", queue="passing")
    )
    store.behind_bytes = BEHIND_BYTES + 1
    peer.data_received(publish(1, b"one", routing_key="durable"))
    peer.data_received(publish(1, b"one", LASTS, routing_key="passing"))
    peer.data_received(method(1, "Basic.Consume", queue="durable"))
    assert transport.is_reading()
    writer, written = meet_open(listener)
    writer.data_received(publish(1, b"one", LASTS, routing_key="durable"))
    peer.data_received(method(1, "Basic.Ack", delivery_tag=1))
    assert transport.is_reading()
    assert not written.is_reading()


async def test_its_silence_is_not_held_against_it(
    listener: Listener, store: ManualStore, clock: ManualClock
) -> None:
    peer, transport = meet_open(listener, heartbeat_s=10)
    peer.data_received(method(1, "Queue.Declare", queue="q", durable=True))
    store.behind_bytes = BEHIND_BYTES + 1
    peer.data_received(publish(1, b"one", LASTS, routing_key="q"))
    for _ in range(10):
        clock.advance(10_000)
        look_after(listener)
    assert not transport.was_aborted()


async def test_a_peer_that_goes_while_it_waits(listener: Listener, store: ManualStore) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(method(1, "Queue.Declare", queue="q", durable=True))
    store.behind_bytes = BEHIND_BYTES + 1
    peer.data_received(publish(1, b"one", LASTS, routing_key="q"))
    transport.close()
    peer.connection_lost(None)
    store.behind_bytes = 0
    store.commit()
    other, others = meet_open(listener)
    other.data_received(publish(1, b"two", LASTS, routing_key="q"))
    await until(others.is_reading)
    assert not transport.is_reading()


async def test_the_rest_of_a_read_waits_too(
    listener: Listener, store: ManualStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(method(1, "Queue.Declare", queue="q", durable=True))
    transport.replies()
    store.behind_bytes = BEHIND_BYTES + 1
    times = count(clock.now_ms(), 3)
    monkeypatch.setattr(clock, "now_ms", lambda: next(times))
    peer.data_received(
        publish(1, b"one", LASTS, routing_key="q") + method(1, "Queue.Declare", queue="behind")
    )
    assert peer.connection.unfinished
    for _ in range(10):
        await asyncio.sleep(0)
    assert transport.replies() == []
    store.behind_bytes = 0
    store.commit()
    await until(transport.is_reading)
    assert names(transport.replies()) == ["Queue.DeclareOk"]
