"""Publishers of persistent messages pause while the disk is behind."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from tests.support.amqp import method, names, publish
from tests.support.manual_store import ManualStore
from warrenmq.core.clock import ManualClock
from warrenmq.core.server.listener import Listener
from warrenmq.core.store.progress import BEHIND_BYTES

from .support import meet_open, until

LASTS = {"delivery_mode": 2}


@pytest.fixture
def store() -> ManualStore:
    store = ManualStore()
    store.paging = False
    return store


async def test_a_publisher_is_paused_until_half_is_written(
    listener: Listener, store: ManualStore
) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(method(1, "Queue.Declare", queue="q", durable=True))
    store.progress.behind_bytes = BEHIND_BYTES
    peer.data_received(publish(1, b"one", LASTS, routing_key="q"))
    assert transport.is_reading()
    store.progress.behind_bytes = BEHIND_BYTES + 1
    peer.data_received(publish(1, b"two", LASTS, routing_key="q"))
    assert not transport.is_reading()
    store.progress.behind_bytes = BEHIND_BYTES // 2 + 1
    store.commit()
    assert peer.is_blocked
    store.progress.behind_bytes = BEHIND_BYTES // 2
    store.commit()
    await until(transport.is_reading)
    assert not peer.is_paused
    peer.data_received(publish(1, b"three", LASTS, routing_key="q"))
    assert transport.is_reading()


async def test_publishers_without_durable_messages_are_not_paused(
    listener: Listener, store: ManualStore
) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(
        method(1, "Queue.Declare", queue="durable", durable=True)
        + method(1, "Queue.Declare", queue="passing")
    )
    store.progress.behind_bytes = BEHIND_BYTES + 1
    peer.data_received(publish(1, b"one", routing_key="durable"))
    peer.data_received(publish(1, b"one", LASTS, routing_key="passing"))
    peer.data_received(method(1, "Basic.Consume", queue="durable"))
    assert transport.is_reading()
    writer, written = meet_open(listener)
    writer.data_received(publish(1, b"one", LASTS, routing_key="durable"))
    peer.data_received(method(1, "Basic.Ack", delivery_tag=1))
    assert transport.is_reading()
    assert not written.is_reading()


async def test_a_paused_peer_disconnects(listener: Listener, store: ManualStore) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(method(1, "Queue.Declare", queue="q", durable=True))
    store.progress.behind_bytes = BEHIND_BYTES + 1
    peer.data_received(publish(1, b"one", LASTS, routing_key="q"))
    transport.close()
    peer.connection_lost(None)
    store.progress.behind_bytes = 0
    store.commit()
    other, others = meet_open(listener)
    other.data_received(publish(1, b"two", LASTS, routing_key="q"))
    await until(others.is_reading)
    assert not transport.is_reading()


async def test_the_rest_of_a_read_waits_for_the_disk(
    listener: Listener, store: ManualStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, transport = meet_open(listener)
    peer.data_received(method(1, "Queue.Declare", queue="q", durable=True))
    transport.replies()
    store.progress.behind_bytes = BEHIND_BYTES + 1
    times = count(clock.now_ms(), 3)
    monkeypatch.setattr(clock, "now_ms", lambda: next(times))
    peer.data_received(
        publish(1, b"one", LASTS, routing_key="q") + method(1, "Queue.Declare", queue="behind")
    )
    assert peer.connection.pending.unfinished
    for _ in range(10):
        await asyncio.sleep(0)
    assert transport.replies() == []
    store.progress.behind_bytes = 0
    store.commit()
    await until(transport.is_reading)
    assert names(transport.replies()) == ["Queue.DeclareOk"]
