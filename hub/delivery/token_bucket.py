"""A token bucket: tokens at an even rate, and a short burst after a pause."""

from __future__ import annotations

BURST_S = 0.1  # the tokens of so much time accumulate, for timers are late


class TokenBucket:
    """A token bucket. Times are seconds of any clock that does not go back."""

    __slots__ = ("_full", "_tokens", "_updated_s", "rate")

    def __init__(self, rate: float, now_s: float) -> None:
        self.rate = rate
        self._full = max(1.0, rate * BURST_S)
        self._tokens = self._full
        self._updated_s = now_s

    def take(self, now_s: float) -> bool:
        """Takes a token. Returns False if there is none."""
        self._refill(now_s)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def wait_s(self, now_s: float) -> float:
        """Returns the seconds until there is a token."""
        self._refill(now_s)
        return max(0.0, (1.0 - self._tokens) / self.rate)

    def is_full(self, now_s: float) -> bool:
        self._refill(now_s)
        return self._tokens >= self._full

    def _refill(self, now_s: float) -> None:
        gained = (now_s - self._updated_s) * self.rate
        self._tokens = min(self._full, self._tokens + gained)
        self._updated_s = now_s
