"""Which subscription ends next. Deadlines are wall time on disk and monotonic in here, so a
clock that jumps while the hub runs ends nothing early."""

from __future__ import annotations

import heapq

from ...core.clock import Clock
from .subscription import Subscription


class Leases:
    """A heap of deadlines; a renewed or ended lease leaves a stale entry that is skipped."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}

    def hold(self, subscription: Subscription) -> None:
        """Starts the lease, or moves its end to the renewed one."""
        left_s = subscription.expires_at - self._clock.wall_s()
        self.hold_for(subscription.id, min(max(left_s, 0.0), subscription.lease_seconds))

    def hold_for(self, subscription_id: str, seconds: float) -> None:
        due = self._now_s() + seconds
        self._due[subscription_id] = due
        heapq.heappush(self._heap, (due, subscription_id))

    def drop(self, subscription_id: str) -> None:
        self._due.pop(subscription_id, None)

    def take_expired(self) -> list[str]:
        """The ids whose time is over; each is given once."""
        now = self._now_s()
        expired = []
        while self._heap and self._heap[0][0] <= now:
            due, subscription_id = heapq.heappop(self._heap)
            if self._due.get(subscription_id) == due:
                del self._due[subscription_id]
                expired.append(subscription_id)
        return expired

    def next_s(self) -> float | None:
        """Seconds to the next deadline, or None without a lease."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if not self._heap:
            return None
        return max(0.0, self._heap[0][0] - self._now_s())

    def _now_s(self) -> float:
        return self._clock.now_ms() / 1000
