"""A full disk: nothing is confirmed that is not stored, and it can be drained."""

from __future__ import annotations

import random

import pytest

from tests.core.messages import batch
from tests.support.faulty_disk import CHANGES, FaultyDisk, Keep
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.queue_entry import QueueEntry
from warrenmq.core.store.durable import DurableStore
from warrenmq.core.store.reserve import NAME, Reserve
from warrenmq.core.wire.properties import PERSISTENT

from .fake_queue import FakeQueue
from .workload import SEGMENT_BYTES, Workload, recover

ROOM = 2**40


class Filling:
    """Takes all free space of a disk at its n-th change."""

    def __init__(self, disk: FaultyDisk, nth: int, spare: int) -> None:
        self.disk, self.nth, self.spare = disk, nth, spare
        self.is_full = False
        disk.before = self.look

    def look(self, kind: str, name: str) -> None:
        if kind in CHANGES and self.disk.changes == self.nth and not self.is_full:
            self.is_full = True
            self.disk.capacity = self.disk.used_bytes() + self.spare

    def empty(self) -> None:
        self.disk.capacity = ROOM


def assert_kept(workload: Workload, chance: random.Random) -> None:
    for keep in (Keep.NONE, Keep.RANDOM):
        _, found = recover(workload.disk.power_cut(keep, chance))
        assert workload.history.faults(found) == []


@pytest.mark.parametrize("nth", range(3, 140, 4))
def test_nothing_is_confirmed_falsely_wherever_the_disk_is_full(nth: int) -> None:
    chance = random.Random(nth)
    disk = FaultyDisk()
    filling = Filling(disk, nth, spare=chance.randrange(600))
    workload = Workload(disk, nth, reserve_bytes=600)
    workload.open()
    for _ in range(80):
        workload.run(2)
        if filling.is_full:
            assert_kept(workload, chance)
        if workload.store.progress.refused > workload.store.progress.committed:
            break
    assert filling.is_full
    workload.run(3)
    filling.empty()
    workload.settle_down()
    asked = workload.store.barrier()
    assert not asked
    assert_kept(workload, chance)
    assert workload.failures == []


@pytest.mark.parametrize("nth", range(5, 90, 5))
def test_a_restart_on_a_full_disk_loses_nothing(nth: int) -> None:
    chance = random.Random(nth)
    disk = FaultyDisk()
    filling = Filling(disk, nth, spare=chance.randrange(300))
    workload = Workload(disk, nth)
    workload.open()
    while not filling.is_full:
        workload.run(2)
    workload.run(20)
    workload.disk = cut = disk.power_cut(Keep.RANDOM, chance)
    cut.capacity = cut.used_bytes() + chance.randrange(200)
    store, found = recover(cut)
    assert workload.history.faults(found) == []
    _, again = recover(cut.power_cut(Keep.RANDOM, chance))
    assert again == found
    del store


def publish(store: DurableStore, queue: FakeQueue) -> int:
    one = batch(5, store.reserve(5), PERSISTENT, 40)
    entry = QueueEntry(one, None)
    number = store.append(one, [(queue, entry)])
    queue.backlog.append(entry)
    store.request()
    store.turned()
    return number


def full_store() -> tuple[FaultyDisk, DurableStore, FakeQueue, ManualClock]:
    """Publishes until it is refused, with a reserve."""
    disk = FaultyDisk()
    disk.capacity = 40_000
    clock = ManualClock()
    store = DurableStore(disk, clock=clock, segment_bytes=SEGMENT_BYTES, reserve_bytes=8_000)
    queue = FakeQueue(store.reserve(1))
    store.define(b"q%d" % queue.id, b"queue")
    for _ in range(1_000):
        publish(store, queue)
        clock.advance(1_000)
        if NAME not in disk.files():
            return disk, store, queue, clock
    raise AssertionError("the reserve was never used")


def test_a_publish_that_does_not_fit_is_refused() -> None:
    disk, store, queue, _ = full_store()
    for _ in range(100):
        number = publish(store, queue)
        if store.progress.refused >= number:
            break
    assert store.progress.committed < number <= store.progress.refused
    disk.capacity = ROOM
    later = publish(store, queue)
    assert store.progress.committed >= later > number


def test_reserve_permits_settling_until_the_disk_is_drained() -> None:
    disk, store, queue, _ = full_store()
    assert disk.free_bytes() < 9_000
    while (messages := queue.backlog.head()) is not None:
        store.settle(queue, queue.backlog.take(messages, 3))  # type: ignore[arg-type]
        number = store.barrier()
        store.request()
        store.turned()
        assert store.progress.committed >= number
    assert store.progress.refused <= store.progress.committed


def test_a_full_disk_can_be_drained_and_filled_again() -> None:
    disk, store, queue, clock = full_store()
    for _ in range(5):
        while (messages := queue.backlog.head()) is not None:
            store.settle(queue, queue.backlog.take(messages, 3))  # type: ignore[arg-type]
            clock.advance(1_000)
            store.request()
            store.turned()
        for _ in range(20):
            clock.advance(30_000)
            store.turned()
        assert NAME in disk.files(), "the reserve was not taken again"
        for _ in range(60):
            number = publish(store, queue)
            clock.advance(1_000)
            assert store.progress.committed >= number


# -- the reserve


def test_the_reserve_of_an_earlier_process_is_held_though_the_disk_is_full() -> None:
    disk = FaultyDisk()
    assert not Reserve(disk, 1_000).is_used
    disk.capacity = disk.used_bytes()
    reserve = Reserve(disk, 1_000)
    assert reserve.use()
    assert disk.free_bytes() == 1_000
    assert not reserve.use()


def test_reserve_is_allocated_only_if_twice_its_size_is_free() -> None:
    disk = FaultyDisk()
    disk.capacity = 1_999
    reserve = Reserve(disk, 1_000)
    assert (reserve.is_used, reserve.use(), disk.used_bytes()) == (False, False, 0)
    disk.capacity = 2_000
    reserve.take()
    assert (reserve.is_used, disk.used_bytes()) == (False, 1_000)


def test_used_reserve_is_reported_until_it_is_allocated_again() -> None:
    """Whether this process used it or one before."""
    disk = FaultyDisk()
    used = Reserve(disk, 1_000)
    assert used.use()
    disk.capacity = 999
    for reserve in (used, Reserve(disk, 1_000)):
        disk.capacity = 999
        assert reserve.is_used
        disk.capacity = 1_999
        reserve.take()
        assert (reserve.is_used, disk.used_bytes()) == (True, 0)
        disk.capacity = 2_000
        reserve.take()
        assert (reserve.is_used, disk.used_bytes()) == (False, 1_000)
        disk.remove(NAME)


def test_short_reserve_file_is_allocated_again() -> None:
    disk = FaultyDisk({NAME: bytes(10)})
    assert not Reserve(disk, 1_000).is_used
    assert disk.used_bytes() == 1_000


def test_reserve_of_0_bytes_takes_no_space() -> None:
    disk = FaultyDisk()
    assert not Reserve(disk, 0).use()
    assert disk.names() == []
