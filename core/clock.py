"""Clocks: monotonic, steady and wall time.

Intervals and ages are measured by the monotonic clock. The wall clock is for times that people or
other programs read, and for the time between two processes.
"""

from __future__ import annotations

import time
from typing import Final, Protocol

LOOK_S: Final = 2**-20
"""What a look at `ManualClock.work_s` takes, so that a slice (`slices.py`) is a number of steps."""


class Clock(Protocol):
    """The clocks of a broker."""

    def now_ms(self) -> int:
        """Returns monotonic milliseconds; steps of the wall clock don't change it."""

    def steady_ms(self) -> int:
        """Returns milliseconds since 1970 for stored times: the wall time of the start, continued
        monotonically. A step of the wall clock doesn't change it."""

    def wall_s(self) -> float:
        """Returns seconds since 1970 by the machine's clock, which may step."""

    def work_s(self) -> float:
        """Returns seconds of a precise clock, by which work is divided into slices."""

    def resume(self, behind_ms: int) -> None:
        """Continues the steady time of an earlier process, which was `behind_ms` behind its wall
        clock."""


def wall_ms(clock: Clock) -> int:
    """Returns milliseconds since 1970, rounded: as a float 0.4 s is often less than 400 ms."""
    return round(clock.wall_s() * 1000)


def wall_ahead_ms(clock: Clock) -> int:
    """Returns how far the wall clock is ahead of steady time, by steps since the start."""
    return wall_ms(clock) - clock.steady_ms()


class SystemClock:
    """The clocks of the operating system."""

    work_s = staticmethod(time.perf_counter)

    def __init__(self) -> None:
        self._epoch_ms = wall_ms(self) - self.now_ms()

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def steady_ms(self) -> int:
        return self._epoch_ms + self.now_ms()

    def wall_s(self) -> float:
        return time.time()

    def resume(self, behind_ms: int) -> None:
        # A machine without a battery begins in 1970 each time; records hold no time before that.
        self._epoch_ms = max(self._epoch_ms - behind_ms, -self.now_ms())


class ManualClock:
    """A clock for tests, which moves only when `advance` or `step` is called; `work_s` moves by
    `LOOK_S` at each look."""

    def __init__(self, now_ms: int = 1_000_000, wall_s: float = 1_700_000_000.0) -> None:
        self._now_ms = now_ms
        self._wall_s = wall_s
        self._epoch_ms = 0
        self._work_s = 0.0
        self.restart()

    def now_ms(self) -> int:
        return self._now_ms

    def steady_ms(self) -> int:
        return self._epoch_ms + self._now_ms

    def wall_s(self) -> float:
        return self._wall_s

    def work_s(self) -> float:
        self._work_s += LOOK_S
        return self._work_s

    def resume(self, behind_ms: int) -> None:
        # A machine without a battery begins in 1970 each time; records hold no time before that.
        self._epoch_ms = max(self._epoch_ms - behind_ms, -self.now_ms())

    def advance(self, by_ms: int) -> None:
        self._now_ms += by_ms
        self._wall_s += by_ms / 1000

    def step(self, by_s: float) -> None:
        """Steps the wall clock alone."""
        self._wall_s += by_s

    def restart(self) -> None:
        """Sets steady time to wall time, as at the start of a process."""
        self._epoch_ms = wall_ms(self) - self._now_ms
