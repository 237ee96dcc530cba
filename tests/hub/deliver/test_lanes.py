from __future__ import annotations

from warren.core.model import Message, Properties
from warren.hub.deliver.lanes import Job, Lanes
from warren.hub.live import Live
from warren.hub.requests import Resource
from warren.hub.subscription import Subscription


class Handed:
    message = Message("", "", Properties(), b"")
    sequence = 1

    def ack(self) -> None: ...
    def nack(self, *, requeue: bool) -> None: ...


def live(*, is_slow: bool = False) -> Live:
    source = Resource("/", "x", "news")
    made = Live(Subscription("1", source, "#", "http://a.b/", 60, 0.0, "guest"))
    made.is_slow = is_slow
    return made


class Rig:
    def __init__(self, fast: int, slow: int, most: int) -> None:
        self.started: list[Job] = []
        self.lanes = Lanes(fast, slow, most, self.started.append)

    def enter(self, count: int, *, is_slow: bool = False, now_ms: int = 0) -> None:
        for _ in range(count):
            self.lanes.enter(live(is_slow=is_slow), Handed(), now_ms)


def test_no_more_start_than_there_are_slots() -> None:
    rig = Rig(2, 1, 10)
    rig.enter(5)
    assert len(rig.started) == 2
    rig.lanes.leave(rig.started[0], 0)
    assert len(rig.started) == 3


def test_slow_targets_wait_for_slow_slots_alone() -> None:
    rig = Rig(2, 1, 10)
    rig.enter(3, is_slow=True)
    assert len(rig.started) == 1
    rig.enter(2)
    assert len(rig.started) == 3


def test_what_turns_out_slow_frees_its_fast_slot() -> None:
    rig = Rig(2, 1, 10)
    rig.enter(4)
    rig.lanes.part_slow(999, 1000)
    assert len(rig.started) == 2 and rig.lanes.has_young
    rig.lanes.part_slow(1000, 1000)
    assert len(rig.started) == 4 and rig.lanes.running == 4
    for job in list(rig.started):
        rig.lanes.leave(job, 1000)
    assert rig.lanes.running == 0 and not rig.lanes.has_young


def test_running_ones_are_bounded_whatever_their_lane() -> None:
    rig = Rig(2, 1, 3)
    rig.enter(9)
    rig.lanes.part_slow(1000, 1000)
    assert rig.lanes.running == 3


def test_taking_what_waits() -> None:
    rig = Rig(1, 1, 10)
    rig.enter(3)
    assert len(rig.lanes.take_waiting()) == 2
    rig.lanes.leave(rig.started[0], 0)
    assert len(rig.started) == 1
