"""What is known of a subscription whose deliveries fail, or have failed."""

from __future__ import annotations

from dataclasses import dataclass, field

from .breaker import Breaker

MAX_ERROR_CHARACTERS = 200


class FailureState:
    """Times are wall time in seconds; made at the first failure, for most never have one."""

    __slots__ = ("breaker", "error_count", "first_error_at", "last_error", "last_error_at")

    def __init__(self) -> None:
        self.breaker = Breaker()
        self.error_count = 0
        """Failures since the last success."""
        self.first_error_at = 0.0
        """Of these failures; 0 while there is none."""
        self.last_error_at = 0.0
        self.last_error = ""

    def add(self, error: str, at: float) -> None:
        if self.error_count == 0:
            self.first_error_at = at
        self.error_count += 1
        self.last_error_at = at
        self.last_error = error[:MAX_ERROR_CHARACTERS]

    def end(self) -> None:
        """A delivery has succeeded; what the last error was stays known."""
        self.breaker.succeeded()
        self.error_count = 0
        self.first_error_at = 0.0


@dataclass(frozen=True, slots=True)
class Blocking:
    """The message that a strict order waits for; `not_before` is wall time in seconds, `due_ms` the
    same moment by the monotonic clock, None if an earlier process has set it."""

    webhook_id: str
    failures: int
    not_before: float
    reason: str
    due_ms: int | None = field(default=None, compare=False)
