"""Slots for deliveries, so that slow targets hold up only each other.

There are two lanes. A delivery waits for a slot of the slow lane if its target was slow last
time. One that turns out slow while it runs changes lanes then, and its fast slot is free: a
thousand hanging targets hold the fast lane for `part_after_s` once, not for their timeouts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ..engine.port import Delivery
from ..live import Live


class Lane:
    __slots__ = ("busy", "slots", "waiting")

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.busy = 0
        self.waiting: deque[Job] = deque()


class Job:
    """One message on its way to one subscription."""

    __slots__ = ("delivery", "lane", "live", "started_ms")

    def __init__(self, live: Live, delivery: Delivery, lane: Lane) -> None:
        self.live = live
        self.delivery = delivery
        self.lane = lane
        self.started_ms = 0


class Lanes:
    """Calls `start` for each job that has got a slot; the runner calls `leave` at its end."""

    def __init__(
        self, fast_slots: int, slow_slots: int, max_running: int, start: Callable[[Job], None]
    ) -> None:
        self._fast = Lane(fast_slots)
        self._slow = Lane(slow_slots)
        self._max_running = max_running
        self._start = start
        self._young: dict[Job, None] = {}  # in the order of their start

    @property
    def running(self) -> int:
        return self._fast.busy + self._slow.busy

    @property
    def has_young(self) -> bool:
        return bool(self._young)

    def enter(self, live: Live, delivery: Delivery, now_ms: int) -> None:
        lane = self._slow if live.is_slow else self._fast
        lane.waiting.append(Job(live, delivery, lane))
        self._fill(lane, now_ms)

    def leave(self, job: Job, now_ms: int) -> None:
        self._young.pop(job, None)
        job.lane.busy -= 1
        self._fill(self._fast, now_ms)
        self._fill(self._slow, now_ms)

    def part_slow(self, now_ms: int, after_ms: int) -> None:
        """Moves the jobs that have been running that long out of the fast lane."""
        while self._young:
            job = next(iter(self._young))
            if now_ms - job.started_ms < after_ms:
                break
            del self._young[job]
            job.lane.busy -= 1
            job.lane = self._slow
            job.lane.busy += 1
        self._fill(self._fast, now_ms)

    def take_waiting(self) -> list[Job]:
        """Empties the lanes of what has not started."""
        jobs = [*self._fast.waiting, *self._slow.waiting]
        self._fast.waiting.clear()
        self._slow.waiting.clear()
        return jobs

    def _fill(self, lane: Lane, now_ms: int) -> None:
        while lane.waiting and lane.busy < lane.slots and self.running < self._max_running:
            job = lane.waiting.popleft()
            job.started_ms = now_ms
            lane.busy += 1
            if lane is self._fast:
                self._young[job] = None
            self._start(job)
