from __future__ import annotations

from warrenmq.core.histogram import Histogram


def test_a_value_counts_at_its_bound_and_all_above() -> None:
    histogram = Histogram((1, 10))
    for value in (0.5, 1, 7, 11):
        histogram.observe(value)
    histogram.observe(10, times=5)
    assert histogram.cumulative() == [2, 8, 9]
    assert histogram.sum == 69.5
