"""A replay keeps to its rate."""

from __future__ import annotations

import pytest

from warrenmq.hub.pipeline.jobs.replay import commit_rows
from warrenmq.hub.pipeline.rate_limiter import RowRateLimiter


def test_rows_wait_for_those_before_them_and_nothing_is_made_up_for() -> None:
    now_s = 100.0
    limiter = RowRateLimiter(10.0, lambda: now_s)
    assert [limiter.wait_s(5), limiter.wait_s(20), limiter.wait_s(1)] == [0.0, 0.5, 2.5]
    now_s = 102.0
    assert limiter.wait_s(1) == pytest.approx(0.6)
    now_s = 200.0
    assert [limiter.wait_s(10), limiter.wait_s(1)] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("rate", "rows"), [(0.5, 1), (9, 1), (100, 10), (1000, 100), (10_000_000, 10_000)]
)
def test_a_slow_replay_has_small_transactions(rate: float, rows: int) -> None:
    assert commit_rows(rate) == rows
