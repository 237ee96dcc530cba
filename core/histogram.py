"""A cumulative histogram: the number of values up to each bound, and the sum of all values."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate


class Histogram:
    """Values from one thread; `bounds` ascend, and larger values are counted above them."""

    __slots__ = ("_counts", "bounds", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.sum = 0.0
        self._counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float, times: int = 1) -> None:
        """Counts a value that was seen so many times."""
        self._counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def cumulative(self) -> list[int]:
        """Returns how many values were at most each bound, and at last how many there were."""
        return list(accumulate(self._counts))
