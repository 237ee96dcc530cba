"""Bounds deliveries in progress, so that slow targets delay only each other.

There are three pools: for targets whose last delivery succeeded in time, for those whose last
delivery was slow, and for all others, which may be slow. A thousand of these must not delay the
quick ones: they have slots of their own, only a few start in each iteration of the event loop, and
a part of all slots is reserved for quick targets.

A delivery that turns out slow while it runs moves to the slow pool, so it occupies another slot
for `part_after_s` at most, not until the timeout.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ...core.clock import Clock
from ..engine.port import Delivery
from ..subscriptions.active import ActiveSubscription
from .envelope import Envelope
from .request import DeliveryRequest

STARTS_A_ROUND = 2
"""Deliveries to targets that may be slow, in one iteration of the loop: dialling one takes 0.25 ms
of CPU."""
QUICK_STARTS_A_ROUND = 100
"""Deliveries to quick targets, in one iteration of the loop: they take less than 10 ms."""
RESERVED = 0.2
"""The part of all slots that is reserved for quick targets."""


class ConcurrencyPool:
    __slots__ = ("busy", "is_quick", "slots", "waiting")

    def __init__(self, slots: int, *, is_quick: bool = False) -> None:
        self.slots = slots
        self.is_quick = is_quick
        self.busy = 0
        self.waiting: deque[DeliveryJob] = deque()


class DeliveryJob:
    """The delivery of one message to one subscription."""

    __slots__ = (
        "active", "delivery", "envelope", "is_settled", "next_at", "pool", "request", "started_ms",
    )  # fmt: skip

    def __init__(
        self, active: ActiveSubscription, delivery: Delivery, pool: ConcurrencyPool
    ) -> None:
        self.active = active
        self.delivery = delivery
        self.pool = pool
        self.envelope: Envelope
        """Read from the message when the job starts."""
        self.request: DeliveryRequest | None = None
        """Set when it is posted."""
        self.next_at: float | None = None
        """When the message is delivered again after a failure, in wall time."""
        self.started_ms = 0
        self.is_settled = False
        """Whether its message is settled, or will be when its outcome is durable."""


class ConcurrencyPools:
    """Assigns slots to deliveries: calls `start` for each job that gets one; `leave` is called at
    its end.

    `soon` schedules a call in the next iteration of the event loop.
    """

    def __init__(
        self,
        quick_slots: int,
        new_slots: int,
        slow_slots: int,
        max_running: int,
        clock: Clock,
        start: Callable[[DeliveryJob], None],
        soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._quick = ConcurrencyPool(quick_slots, is_quick=True)
        self._new = ConcurrencyPool(new_slots)
        self._slow = ConcurrencyPool(slow_slots)
        self._max_running = max_running
        self._max_others = max(1, int(max_running * (1 - RESERVED)))
        self._clock = clock
        self._start = start
        self._soon = soon
        self._starts_left = STARTS_A_ROUND
        self._quick_starts_left = QUICK_STARTS_A_ROUND
        self._is_paused = False
        self._young: dict[DeliveryJob, None] = {}  # in the order of their start

    @property
    def running(self) -> int:
        return self._quick.busy + self._new.busy + self._slow.busy

    @property
    def has_young(self) -> bool:
        return bool(self._young)

    def enter(self, active: ActiveSubscription, delivery: Delivery) -> None:
        pool = self._pool_of(active)
        pool.waiting.append(DeliveryJob(active, delivery, pool))
        self._fill(pool)

    def leave(self, job: DeliveryJob) -> None:
        self._young.pop(job, None)
        job.pool.busy -= 1
        self._fill_all()

    def move_slow(self, after_ms: int) -> None:
        """Moves the jobs that have been running for `after_ms` into the slow pool."""
        now_ms = self._clock.now_ms()
        while self._young:
            job = next(iter(self._young))
            if now_ms - job.started_ms < after_ms:
                break
            del self._young[job]
            job.pool.busy -= 1
            job.pool = self._slow
            job.pool.busy += 1
        self._fill_all()

    def pause(self) -> None:
        """Starts no jobs until `resume`."""
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._fill_all()

    def take_waiting(self) -> list[DeliveryJob]:
        """Removes and returns all jobs that have not started."""
        jobs = [*self._quick.waiting, *self._new.waiting, *self._slow.waiting]
        for pool in (self._quick, self._new, self._slow):
            pool.waiting.clear()
        return jobs

    def _pool_of(self, active: ActiveSubscription) -> ConcurrencyPool:
        if active.is_slow:
            return self._slow
        return self._quick if active.last_success_at and not active.error_count else self._new

    def _fill_all(self) -> None:
        self._fill(self._quick)
        self._fill(self._new)
        self._fill(self._slow)

    def _fill(self, pool: ConcurrencyPool) -> None:
        while pool.waiting and not self._is_paused and self._has_slot(pool):
            if not (self._take_quick_start() if pool.is_quick else self._take_start()):
                return
            job = pool.waiting.popleft()
            job.started_ms = self._clock.now_ms()
            pool.busy += 1
            if pool is not self._slow:
                self._young[job] = None
            self._start(job)

    def _has_slot(self, pool: ConcurrencyPool) -> bool:
        if pool.busy >= pool.slots or self.running >= self._max_running:
            return False
        return pool.is_quick or self._new.busy + self._slow.busy < self._max_others

    def _take_start(self) -> bool:
        if self._starts_left == STARTS_A_ROUND:
            self._soon(self._next_round)
        if not self._starts_left:
            return False
        self._starts_left -= 1
        return True

    def _take_quick_start(self) -> bool:
        if not self._quick_starts_left:
            return False
        self._quick_starts_left -= 1
        if not self._quick_starts_left:
            self._soon(self._next_round)
        return True

    def _next_round(self) -> None:
        self._starts_left = STARTS_A_ROUND
        self._quick_starts_left = QUICK_STARTS_A_ROUND
        self._fill_all()
