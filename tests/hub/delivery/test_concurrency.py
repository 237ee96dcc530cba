from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.hub.support import subscription
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.model import Message, Properties
from warrenmq.hub.delivery.concurrency import STARTS_A_ROUND, ConcurrencyPools, DeliveryJob
from warrenmq.hub.subscriptions.active import ActiveSubscription


class Handed:
    message = Message("", "", Properties(), b"")
    sequence = 1
    age_s = 0.0
    time_to_live_s: float | None = None

    def ack(self) -> None: ...
    def expire(self, original: Message) -> None: ...
    def nack(self, *, requeue: bool) -> None: ...
    def release(self) -> None: ...


def active(kind: str = "new") -> ActiveSubscription:
    made = ActiveSubscription(subscription())
    made.is_slow = kind == "slow"
    if kind == "quick":
        made.succeeded(1.0)
    return made


class Rig:
    def __init__(self, quick: int, new: int, slow: int, most: int) -> None:
        self.started: list[DeliveryJob] = []
        self.soon: list[Callable[[], None]] = []
        self.clock = ManualClock()
        self.pools = ConcurrencyPools(
            quick, new, slow, most, self.clock, self.started.append, self.soon.append
        )

    def enter(self, count: int, kind: str = "quick") -> None:
        for _ in range(count):
            self.pools.enter(active(kind), Handed())

    def move_slow(self, later_ms: int) -> None:
        self.clock.advance(later_ms)
        self.pools.move_slow(1000)

    def next_round(self) -> None:
        for action in [self.soon.pop(0) for _ in list(self.soon)]:
            action()


def test_each_pool_has_its_slots() -> None:
    rig = Rig(2, 1, 1, 10)
    rig.enter(3, "slow")
    assert len(rig.started) == 1
    rig.enter(3, "new")
    assert len(rig.started) == 2
    rig.enter(3, "quick")
    assert len(rig.started) == 4


def test_quick_starts_in_a_round_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.concurrency.QUICK_STARTS_A_ROUND", 3)
    rig = Rig(10, 1, 1, 20)
    rig.enter(8)
    for started in (3, 6, 8):
        assert len(rig.started) == started
        rig.next_round()


def test_a_failed_target_counts_as_new() -> None:
    rig = Rig(5, 1, 1, 10)
    failing = active("quick")
    failing.failed("refused", 2.0)
    for _ in range(2):
        rig.pools.enter(failing, Handed())
    assert len(rig.started) == 1


def test_a_slow_delivery_frees_its_slot() -> None:
    rig = Rig(2, 1, 1, 10)
    rig.enter(4)
    rig.enter(2, "new")
    rig.move_slow(999)
    assert len(rig.started) == 3 and rig.pools.has_young
    rig.move_slow(1)
    assert len(rig.started) == 6 and rig.pools.running == 6
    for job in list(rig.started):
        rig.pools.leave(job)
    assert rig.pools.running == 0 and not rig.pools.has_young


def test_a_part_of_all_slots_is_for_quick_targets() -> None:
    rig = Rig(100, 100, 100, 10)
    for _ in range(3):
        rig.enter(10, "new")
        rig.move_slow(1000)
        rig.next_round()
    assert rig.pools.running == 8
    rig.enter(10)
    assert rig.pools.running == 10


def test_new_starts_in_a_round_are_bounded() -> None:
    rig = Rig(100, 100, 100, 1000)
    rig.enter(STARTS_A_ROUND * 2 + 1, "new")
    assert len(rig.started) == STARTS_A_ROUND
    rig.enter(3, "quick")
    assert len(rig.started) == STARTS_A_ROUND + 3
    rig.next_round()
    assert len(rig.started) == STARTS_A_ROUND * 2 + 3
    rig.next_round()
    assert len(rig.started) == STARTS_A_ROUND * 2 + 4
    rig.next_round()
    assert not rig.soon


def test_the_start_time_is_that_of_the_round() -> None:
    rig = Rig(100, 100, 100, 1000)
    rig.enter(STARTS_A_ROUND * 3, "new")
    for _ in range(2):
        rig.clock.advance(700)
        rig.next_round()
    begun = [job.started_ms - rig.started[0].started_ms for job in rig.started]
    assert begun[::STARTS_A_ROUND] == [0, 700, 1400]
    rig.pools.move_slow(1000)
    assert rig.pools.has_young


def test_taking_waiting_jobs() -> None:
    rig = Rig(1, 1, 1, 10)
    for kind in ("quick", "new", "slow"):
        rig.enter(3, kind)
    assert len(rig.pools.take_waiting()) == 6
    rig.pools.leave(rig.started[0])
    assert len(rig.started) == 3


def test_nothing_starts_during_a_pause() -> None:
    rig = Rig(1, 1, 1, 10)
    rig.pools.pause()
    rig.enter(1)
    rig.enter(1, "new")
    assert not rig.started
    rig.pools.resume()
    assert len(rig.started) == 2
