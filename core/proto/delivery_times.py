"""Approximate delivery times of a channel: those of the first check that saw the deliveries."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

TIMES_MAX: Final = 512


class DeliveryTimes:
    """The check times of one channel, each with the first delivery tag after it."""

    __slots__ = ("_tags", "_times_ms", "next_check_ms")

    def __init__(self) -> None:
        self._tags: list[int] = []
        self._times_ms: list[int] = []
        self.next_check_ms = 0
        """When deliveries that may be late are next checked."""

    def add(self, next_tag: int, now_ms: int, oldest_tag: int) -> None:
        """Adds a check, and drops those older than the oldest unacked delivery."""
        keep = bisect_right(self._tags, oldest_tag)
        if keep:
            del self._tags[:keep], self._times_ms[:keep]
        if not self._tags or self._tags[-1] < next_tag:
            self._tags.append(next_tag)
            self._times_ms.append(now_ms)
        if len(self._tags) > TIMES_MAX:
            # Deliveries whose check is dropped count from the next one.
            del self._tags[:-1:2], self._times_ms[:-1:2]

    def delivered_ms(self, tag: int) -> int | None:
        """The latest time at which this was delivered; None if not checked since."""
        place = bisect_right(self._tags, tag)
        return self._times_ms[place] if place < len(self._times_ms) else None
