"""Limits how often labels are enrolled, for each owner."""

from __future__ import annotations

from typing import Final

BURST_S: Final = 20
"""The enrolments of so many seconds may come at once: a browser opens all its pages at a start."""
MAX_OWNERS: Final = 1_000


class EnrolmentLimiter:
    """A token bucket for each owner. Times are seconds of any clock that does not go back."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._full_at_s: dict[str, float] = {}
        """When the bucket of an owner would be full again."""

    def take(self, owner: str, now_s: float) -> bool:
        """Takes a token; returns False if there is none."""
        full_at_s = max(self._full_at_s.get(owner, now_s), now_s) + 1 / self._rate
        if full_at_s - now_s > BURST_S:
            return False
        if len(self._full_at_s) >= MAX_OWNERS:
            self._full_at_s = {name: at for name, at in self._full_at_s.items() if at > now_s}
        self._full_at_s[owner] = full_at_s
        return True
