"""A breaker for each subscription: deliveries to a callback that keeps failing are suspended.

Closed, every message is delivered. Ten failures in a row open it: nothing is delivered until the
cool-down is over, then it is half-open and one message is delivered. A success closes it, a
failure opens it for twice as long, up to five minutes, so a WebSub subscriber gets its next
update (rule 22).
"""

from __future__ import annotations

from enum import Enum, StrEnum, auto
from typing import Final

from ..transitions import after

THRESHOLD = 10
FIRST_COOL_DOWN_S = 10.0
MAX_COOL_DOWN_S = 300.0


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class BreakerEvent(Enum):
    SUCCESS = auto()
    FAILURE = auto()
    """The threshold of failures in a row was reached, or exceeded."""
    COOLED_DOWN = auto()


MOVES: Final = {
    (BreakerState.CLOSED, BreakerEvent.SUCCESS): BreakerState.CLOSED,
    (BreakerState.CLOSED, BreakerEvent.FAILURE): BreakerState.OPEN,
    # The end of a suspension for another reason.
    (BreakerState.CLOSED, BreakerEvent.COOLED_DOWN): BreakerState.CLOSED,
    # Deliveries that were in flight when it opened.
    (BreakerState.OPEN, BreakerEvent.SUCCESS): BreakerState.CLOSED,
    (BreakerState.OPEN, BreakerEvent.FAILURE): BreakerState.OPEN,
    (BreakerState.OPEN, BreakerEvent.COOLED_DOWN): BreakerState.HALF_OPEN,
    (BreakerState.HALF_OPEN, BreakerEvent.SUCCESS): BreakerState.CLOSED,
    (BreakerState.HALF_OPEN, BreakerEvent.FAILURE): BreakerState.OPEN,
    (BreakerState.HALF_OPEN, BreakerEvent.COOLED_DOWN): BreakerState.HALF_OPEN,
}


class Breaker:
    """The circuit breaker of one subscription. Times are monotonic seconds."""

    __slots__ = ("_cool_down_s", "_failures", "open_until_s", "state")

    def __init__(self) -> None:
        self.state = BreakerState.CLOSED
        self.open_until_s = 0.0
        self._cool_down_s = 0.0
        self._failures = 0

    def succeeded(self) -> None:
        self.state = after(MOVES, self.state, BreakerEvent.SUCCESS)
        self.open_until_s = self._cool_down_s = 0.0
        self._failures = 0

    def failed(self, now_s: float) -> float:
        """Returns the cool-down in seconds if this failure has opened it, else 0."""
        self._failures += 1
        if self._failures < THRESHOLD:
            return 0.0
        before, self.state = self.state, after(MOVES, self.state, BreakerEvent.FAILURE)
        if before is BreakerState.OPEN:
            return 0.0
        self._cool_down_s = min(max(FIRST_COOL_DOWN_S, 2 * self._cool_down_s), MAX_COOL_DOWN_S)
        self.open_until_s = now_s + self._cool_down_s
        return self._cool_down_s

    def cooled_down(self) -> None:
        """Lets one message at a time through, until one succeeds."""
        self.state = after(MOVES, self.state, BreakerEvent.COOLED_DOWN)
