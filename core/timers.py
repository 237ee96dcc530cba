"""Timers: actions that run at a time of the broker's monotonic clock."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

_CLEAR_MIN: Final = 512
"""Cancelled timers are not removed from a smaller heap."""


class Timer:
    """One scheduled action; `cancel` prevents it."""

    __slots__ = ("action", "at_ms")

    def __init__(self, at_ms: int, action: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


class Timers:
    """A heap of timers by monotonic milliseconds.

    Cancelled ones are removed each time the heap has doubled.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._order = count()
        self._clear_at = _CLEAR_MIN

    def at(self, at_ms: int, action: Callable[[], None]) -> Timer:
        """Schedules `action`; actions for the same time run in the order they were scheduled."""
        timer = Timer(at_ms, action)
        if len(self._heap) >= self._clear_at:
            self._clear()
        heappush(self._heap, (at_ms, next(self._order), timer))
        return timer

    def _clear(self) -> None:
        self._heap = [entry for entry in self._heap if entry[2].action is not None]
        heapify(self._heap)
        self._clear_at = max(_CLEAR_MIN, 2 * len(self._heap))

    @property
    def next_ms(self) -> int | None:
        """The time at which the next timer is due; None if there is none."""
        heap = self._heap
        while heap and heap[0][2].action is None:
            heappop(heap)
        return heap[0][0] if heap else None

    def run_due(self, now_ms: int) -> None:
        """Runs the actions that are due, including those scheduled meanwhile."""
        while self._heap and self._heap[0][0] <= now_ms:
            timer = heappop(self._heap)[2]
            action, timer.action = timer.action, None
            if action is not None:
                action()
