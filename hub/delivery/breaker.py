"""A breaker for each subscription: a target that only fails is left alone for a while.

Closed, all goes out. Ten failures in a row open it: nothing is tried until the cool-down is
over, then it is half-open and one message is tried. A success closes it, a failure opens it for
twice as long, up to five minutes, so a WebSub subscriber gets its next update (rule 22).
"""

from __future__ import annotations

from enum import StrEnum

THRESHOLD = 10
FIRST_COOL_DOWN_S = 10.0
MAX_COOL_DOWN_S = 300.0


class State(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class Breaker:
    """Told of each answer and of the end of the cool-down; times are monotonic seconds."""

    __slots__ = ("_cool_down_s", "_failures", "open_until_s", "state")

    def __init__(self) -> None:
        self.state = State.CLOSED
        self.open_until_s = 0.0
        self._cool_down_s = 0.0
        self._failures = 0

    def succeeded(self) -> None:
        self.state = State.CLOSED
        self.open_until_s = self._cool_down_s = 0.0
        self._failures = 0

    def failed(self, now_s: float) -> float:
        """The cool-down in seconds if this failure has opened it, else 0.

        What was under way when it opened may fail after that, and changes nothing.
        """
        self._failures += 1
        if self.state is State.OPEN or self._failures < THRESHOLD:
            return 0.0
        longer_s = max(FIRST_COOL_DOWN_S, 2 * self._cool_down_s)
        self._cool_down_s = min(longer_s, MAX_COOL_DOWN_S)
        self.state = State.OPEN
        self.open_until_s = now_s + self._cool_down_s
        return self._cool_down_s

    def cooled_down(self) -> None:
        """From now on one message at a time is tried, until one succeeds."""
        if self.state is State.OPEN:
            self.state = State.HALF_OPEN
