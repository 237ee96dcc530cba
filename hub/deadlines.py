"""One deadline for each key, in monotonic seconds: a clock that jumps ends nothing early."""

from __future__ import annotations

import asyncio
import heapq

from ..core.clock import Clock


class Deadlines:
    """A heap; a deadline that was replaced or removed leaves a stale entry that is skipped."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._due)

    def now_s(self) -> float:
        return self._clock.now_ms() / 1000

    def set(self, key: str, delay_s: float) -> None:
        """Sets the deadline of the key, `delay_s` from now, instead of an earlier one."""
        due = self.now_s() + delay_s
        self._due[key] = due
        heapq.heappush(self._heap, (due, key))
        self._changed.set()

    def remove(self, key: str) -> None:
        """Removes the deadline of the key, if it has one."""
        self._due.pop(key, None)

    def take_due(self, limit: int | None = None) -> list[str]:
        """Removes and returns the keys whose deadline has passed, the earliest first; `limit` of
        them at most."""
        now, keys = self.now_s(), list[str]()
        while self._heap and self._heap[0][0] <= now and len(keys) != limit:
            due, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                keys.append(key)
        return keys

    async def wait(self) -> None:
        """Waits until a deadline may have passed."""
        self._changed.clear()
        try:
            async with asyncio.timeout(self.next_s()):
                await self._changed.wait()
        except TimeoutError:
            return

    def next_s(self) -> float | None:
        """Returns the seconds until the next deadline, 0 if it has passed, None without one."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return max(0.0, self._heap[0][0] - self.now_s()) if self._heap else None
