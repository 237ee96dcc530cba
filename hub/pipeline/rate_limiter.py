"""Keeps the publishing of rows to a rate."""

from __future__ import annotations

import time
from collections.abc import Callable


class RowRateLimiter:
    """Says when rows are due, so that there are `rate` of them a second at most, at any time: what
    was late is not made up for."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._due_s = clock()

    def wait_s(self, rows: int) -> float:
        """Returns how long to wait before these rows."""
        now_s = self._clock()
        begin_s = max(self._due_s, now_s)
        self._due_s = begin_s + rows / self._rate
        return begin_s - now_s
