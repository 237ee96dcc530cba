"""What is to be done when: one time for each key, in monotonic seconds."""

from __future__ import annotations

import asyncio
import heapq

from ...core.clock import Clock


class Schedule:
    """A heap; what was planned anew leaves a stale entry that is skipped."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, str]] = []
        self._planned: dict[str, float] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._planned)

    def now_s(self) -> float:
        return self._clock.now_ms() / 1000

    def plan(self, key: str, delay_s: float) -> None:
        """Instead of what was planned for the key before."""
        due = self.now_s() + delay_s
        self._planned[key] = due
        heapq.heappush(self._heap, (due, key))
        self._changed.set()

    def drop(self, key: str) -> None:
        self._planned.pop(key, None)

    def take(self) -> list[str]:
        """The keys whose time has come, each once."""
        now, due = self.now_s(), []
        while self._heap and self._heap[0][0] <= now:
            at, key = heapq.heappop(self._heap)
            if self._planned.get(key) == at:
                del self._planned[key]
                due.append(key)
        return due

    async def wait(self) -> None:
        """Until something may be due."""
        self._changed.clear()
        try:
            async with asyncio.timeout(self._next_s()):
                await self._changed.wait()
        except TimeoutError:
            return

    def _next_s(self) -> float | None:
        while self._heap and self._planned.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return max(0.0, self._heap[0][0] - self.now_s()) if self._heap else None
