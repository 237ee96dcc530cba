"""Sequence numbers after a wall clock step between two processes."""

from __future__ import annotations

import random

import pytest

from tests.core.messages import batch
from tests.support.faulty_disk import FaultyDisk, Keep
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.queue_entry import QueueEntry
from warrenmq.core.store.durable import SEQUENCES_AHEAD, DurableStore
from warrenmq.core.wire.properties import PERSISTENT

from .fake_queue import FakeQueue

DAY_S = 86_400.0
NOW_S = 1_700_000_000.0
JUMPS_S = [0.0, 1e-6, -1e-6, 1.0, -1.0, DAY_S, -DAY_S, 3650 * DAY_S, -3650 * DAY_S, -NOW_S]


def opened(disk: FaultyDisk, wall_s: float) -> DurableStore:
    return DurableStore(disk, clock=ManualClock(wall_s=wall_s), segment_bytes=3_000)


def publish(store: DurableStore, queue: FakeQueue, count: int) -> int:
    """Returns the last number."""
    one = batch(count, store.reserve(count), PERSISTENT, 8)
    store.append(one, [(queue, QueueEntry(one, None))])
    return one.sequence + count - 1


@pytest.mark.parametrize("jump_s", JUMPS_S)
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("unwritten", [0, 1_000, 10 * SEQUENCES_AHEAD])
def test_numbers_are_never_handed_out_again(jump_s: float, clean: bool, unwritten: int) -> None:
    disk = FaultyDisk()
    store = opened(disk, NOW_S)
    queue = FakeQueue(store.reserve(1))
    store.define(b"q%d" % queue.id, b"queue")
    last = publish(store, queue, 5)
    for _ in range(20):
        # Messages that are on no disk: transient ones.
        last = max(last, store.reserve(unwritten // 20 + 1))
        store.turned()
    store.request()
    store.turned()
    if clean:
        store.stop()
    else:
        disk = disk.power_cut(Keep.NONE, random.Random(1))
    again = opened(disk, NOW_S + jump_s)
    assert again.reserve(1) > last


def test_numbers_are_unique_with_a_stopped_clock() -> None:
    disk = FaultyDisk()
    before = 0
    for life in range(30):
        store = opened(disk, 0.0)
        first = store.reserve(3)
        assert first > before
        before = first + 2
        if life % 3:
            store.stop()
    assert before < 2**62


def test_later_start_uses_the_current_time() -> None:
    disk = FaultyDisk()
    opened(disk, NOW_S).stop()
    assert opened(disk, NOW_S + DAY_S).reserve(1) == int((NOW_S + DAY_S) * 1e9)
