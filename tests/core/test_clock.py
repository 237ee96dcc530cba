"""Dates of the wall clock in milliseconds."""

from __future__ import annotations

from warren.core.clock import ManualClock, wall_ms


def test_milliseconds_go_with_the_clock() -> None:
    clock = ManualClock(wall_s=1_700_000_000.0)
    for passed_ms in range(1_000):
        assert wall_ms(clock) == 1_700_000_000_000 + passed_ms
        clock.advance(1)
