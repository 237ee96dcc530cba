"""Time, passed in: intervals from a monotonic clock, dates from the wall clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Monotonic milliseconds; jumps of the wall clock don't move it."""

    def wall_s(self) -> float:
        """Seconds since 1970."""


def wall_ms(clock: Clock) -> int:
    """Milliseconds since 1970, rounded: as a float 0.4 s is often a little less than 400 ms, and
    what is read back from the disk would be a millisecond younger than it was."""
    return round(clock.wall_s() * 1000)


class SystemClock:
    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_s(self) -> float:
        return time.time()


class ManualClock:
    """A clock that stands still until it is told to move, for tests."""

    def __init__(self, now_ms: int = 1_000_000, wall_s: float = 1_700_000_000.0) -> None:
        self._now_ms = now_ms
        self._wall_s = wall_s

    def now_ms(self) -> int:
        return self._now_ms

    def wall_s(self) -> float:
        return self._wall_s

    def advance(self, by_ms: int) -> None:
        self._now_ms += by_ms
        self._wall_s += by_ms / 1000
