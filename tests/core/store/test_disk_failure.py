"""A disk that fails once: nothing is confirmed afterwards, and nothing confirmed is lost."""

from __future__ import annotations

import errno
import random

import pytest

from tests.core.messages import batch
from tests.support.faulty_disk import CHANGES, FaultyDisk, Keep, fault
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.queue_entry import QueueEntry
from warrenmq.core.store.durable import DurableStore
from warrenmq.core.store.writer import Append, Roll, WriteGroup, Writer
from warrenmq.core.wire.properties import PERSISTENT

from .fake_queue import FakeQueue
from .workload import SEGMENT_BYTES, Workload, recover


class Failing:
    """The n-th operation of a kind fails, no other."""

    def __init__(self, disk: FaultyDisk, kind: str, nth: int, code: int = errno.EIO) -> None:
        self.kind, self.left, self.code = kind, nth, code
        self.has_failed = False
        disk.before = self.look

    def look(self, kind: str, name: str) -> None:
        if kind == self.kind and not self.has_failed:
            self.left -= 1
            if not self.left:
                self.has_failed = True
                raise fault(self.code)


@pytest.mark.parametrize("kind", sorted(CHANGES))
@pytest.mark.parametrize("nth", [1, 2, 4])
def test_after_an_error_nothing_is_confirmed_any_more(kind: str, nth: int) -> None:
    workload = Workload(FaultyDisk(), nth)
    workload.open()
    workload.run(10)
    failing = Failing(workload.disk, kind, nth)
    for _ in range(500):
        workload.run(1)
        if failing.has_failed:
            break
    else:
        pytest.fail(f"there were no {nth} operations of the kind {kind}")
    committed = workload.store.progress.committed
    workload.run(10)
    workload.settle_down()
    assert [error.errno for error in workload.failures] == [errno.EIO]
    assert workload.store.progress.committed == committed
    assert workload.store.progress.refused > workload.store.barrier() > 0
    workload.stop()
    assert workload.store.progress.committed == committed
    assert len(workload.failures) == 1
    chance = random.Random(nth)
    for keep in Keep:
        _, found = recover(workload.disk.power_cut(keep, chance))
        assert workload.history.faults(found) == []


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_sync_that_failed_is_never_tried_again(code: int) -> None:
    workload = Workload(FaultyDisk(), 3)
    workload.open()
    Failing(workload.disk, "sync", 2, code)
    workload.run(40)
    workload.settle_down()
    assert [error.errno for error in workload.failures] == [code]


@pytest.mark.parametrize("nth", range(1, 12))
@pytest.mark.parametrize("kind", ["write", "sync", "truncate", "create", "dir", "remove"])
def test_an_error_while_opening_is_reported_and_loses_nothing(kind: str, nth: int) -> None:
    workload = Workload(FaultyDisk(), 20)
    workload.open()
    workload.run(60)
    disk = workload.disk.power_cut(Keep.ALL, random.Random(1))
    failing = Failing(disk, kind, nth)
    told: list[OSError] = []
    try:
        store = DurableStore(
            disk, clock=ManualClock(), segment_bytes=SEGMENT_BYTES, on_failure=told.append
        )
    except OSError as error:
        told.append(error)
    else:
        assert bool(told) == (store.progress.committed == 0)
    assert len(told) == failing.has_failed
    _, found = recover(disk.power_cut(Keep.RANDOM, random.Random(nth)))
    assert workload.history.faults(found) == []


def test_a_commit_that_failed_is_refused_at_once() -> None:
    disk = FaultyDisk()
    store = DurableStore(disk, clock=ManualClock())
    queue = FakeQueue(store.reserve(1))
    Failing(disk, "sync", 1)
    one = batch(1, store.reserve(1), PERSISTENT, 8)
    seen: list[tuple[int, bool]] = []
    number = store.append(one, [(queue, QueueEntry(one, None))])
    store.progress.on_change(
        lambda: seen.append((store.progress.committed, store.progress.refused >= number))
    )
    store.request()
    store.turned()
    assert seen == [(number - 1, True)]


# -- the writer itself


class Written:
    """A writer on a disk, and what it told."""

    def __init__(self) -> None:
        self.disk = FaultyDisk()
        self.reports: list[tuple[int, int, int]] = []
        self.failures: list[OSError] = []
        self.room_error: OSError | None = None
        self.writer = Writer(
            self.disk, lambda *told: self.reports.append(told), self.failures.append, self.room
        )
        self.numbers = iter(range(1, 100))

    def room(self) -> bool:
        if self.room_error is not None:
            raise self.room_error
        return False

    def put(self, *work: Append | Roll, synced: bool = True) -> int:
        number = next(self.numbers)
        group = WriteGroup(number)
        group.synced, group.size, group.work = synced, 1, list(work)
        self.writer.put(group)
        return number


def roll(number: int) -> Roll:
    return Roll(number, f"{number}.log", b"header", 100)


def test_batches_without_a_sync_are_covered_by_the_next_one() -> None:
    written = Written()
    written.put(roll(1), synced=False)
    last = written.put()
    assert written.reports == [(0, 0, 1), (last, 0, 1)]


def test_write_that_did_not_fit_leaves_no_bytes() -> None:
    written = Written()
    written.put(roll(1))
    written.disk.capacity = written.disk.used_bytes() + 10
    number = written.put(Append(6, 1, 0, 0, [bytes(200)]))
    assert written.reports[-1] == (0, number, 0)
    assert written.disk.files() == {"1.log": b"header"}
    written.disk.capacity = 10_000
    written.writer.retry()
    assert written.reports[-1] == (number, 0, 1)


def test_a_reserve_that_cannot_be_given_up_ends_the_writer() -> None:
    written = Written()
    written.put(roll(1))
    written.disk.capacity = written.disk.used_bytes()
    written.room_error = fault(errno.EIO)
    written.put(Append(6, 1, 0, 0, [bytes(200)]))
    assert written.failures == [written.room_error]
    assert written.writer.is_dead


def test_a_new_segment_that_did_not_fit_is_made_again() -> None:
    written = Written()
    written.put(roll(1))
    written.disk.capacity = 9
    number = written.put(roll(2))
    assert written.reports[-1] == (0, number, 0)
    written.disk.capacity = 10_000
    written.writer.retry()
    assert written.reports[-1] == (number, 0, 1)
    assert written.disk.files() == {"1.log": b"header", "2.log": b"header".ljust(100, b"\0")}
