"""Wall, steady and monotonic time."""

from __future__ import annotations

import time

import pytest

from warrenmq.core.clock import ManualClock, SystemClock, wall_ahead_ms, wall_ms


def test_milliseconds_follow_the_clock() -> None:
    clock = ManualClock(wall_s=1_700_000_000.0)
    for passed_ms in range(1_000):
        assert wall_ms(clock) == 1_700_000_000_000 + passed_ms
        clock.advance(1)


@pytest.mark.parametrize("step_s", [3_600, -3_600])
def test_steady_time_does_not_follow_a_step(step_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    started_ms, at_s = clock.steady_ms(), time.time()
    monkeypatch.setattr(time, "time", lambda: at_s + step_s)
    assert 0 <= clock.steady_ms() - started_ms < 3_000_000
    assert round(wall_ahead_ms(clock) / 3_600_000) == round(step_s / 3_600)
    clock.resume(wall_ahead_ms(clock))
    assert round((clock.steady_ms() - started_ms) / 3_600_000) == round(-step_s / 3_600)


def test_steady_time_is_never_before_1970() -> None:
    clock = ManualClock(wall_s=1_000.0)
    clock.resume(behind_ms=1_700_000_000_000)
    assert clock.steady_ms() == 0
