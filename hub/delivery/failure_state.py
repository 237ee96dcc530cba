"""The failures of a subscription, and the message that its strict order waits for."""

from __future__ import annotations

from dataclasses import dataclass, field

from .breaker import Breaker

MAX_ERROR_CHARACTERS = 200


class FailureState:
    """The failures of one subscription. Made at the first failure: most subscriptions have none.
    Times are seconds of wall time."""

    __slots__ = (
        "breaker", "error_count", "first_error_at", "last_error", "last_error_at", "rests_until",
    )  # fmt: skip

    def __init__(self) -> None:
        self.breaker = Breaker()
        self.error_count = 0
        """Failures since the last success."""
        self.first_error_at = 0.0
        """The time of the first failure since the last success, 0 without one."""
        self.last_error_at = 0.0
        self.last_error = ""
        self.rests_until = 0.0
        """When the open breaker lets a message through."""

    def add(self, error: str, at: float) -> None:
        if self.error_count == 0:
            self.first_error_at = at
        self.error_count += 1
        self.last_error_at = at
        self.last_error = error[:MAX_ERROR_CHARACTERS]

    def end(self) -> None:
        """Resets counter and breaker after a success; the last error stays."""
        if not self.error_count:
            return
        self.breaker.succeeded()
        self.error_count = 0
        self.first_error_at = 0.0


@dataclass(frozen=True, slots=True)
class Blocking:
    """The message that a strict order waits for. `not_before` is wall time in seconds, `due_ms` the
    same moment by the monotonic clock, None if an earlier process has set it."""

    webhook_id: str
    failures: int
    not_before: float
    reason: str
    due_ms: int | None = field(default=None, compare=False)
