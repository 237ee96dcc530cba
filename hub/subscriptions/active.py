"""A subscription in memory, with the state of its delivery and of its callback."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..delivery.breaker import BreakerState
from ..delivery.failure_state import Blocking, FailureState
from .delivery_state import DeliveryState
from .subscription import Subscription, SubscriptionStatus

if TYPE_CHECKING:
    from ..delivery.rate_limits import RateLimiter
    from ..delivery.request import RequestTemplate

OUTCOMES: Final = 50
"""Attempts from which the part that succeeds is computed."""
_FIRST: Final = 1 << OUTCOMES
_OUTCOMES_MASK: Final = _FIRST - 1
_TOO_MANY: Final = _FIRST << 1


class ActiveSubscription:
    """A subscription in memory, with the state of its delivery. A renewal replaces `subscription`
    while deliveries are in flight.

    There may be ten thousand: what only some of them have is None for the others.
    """

    __slots__ = (
        "blocking",
        "failure_state",
        "is_single",
        "is_slow",
        "last_success_at",
        "outcomes",
        "rate_limiter",
        "request_template",
        "state",
        "subscription",
    )

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.state = DeliveryState(subscription.status)
        self.is_slow = False
        """Whether its last delivery took long: the next one waits for a slow slot."""
        self.is_single = False
        """Whether it gets one message at a time until one succeeds: a delivery timed out, or too
        many messages are waiting already."""
        self.failure_state: FailureState | None = None
        """None until a delivery fails."""
        self.blocking: Blocking | None = None
        """The message that its strict order waits for."""
        self.last_success_at = 0.0
        """Wall time in seconds, 0 before the first success since the start."""
        self.outcomes = 1
        """The last attempts as bits, the newest last, 1 for a success; below a leading 1."""
        self.request_template: RequestTemplate | None = None
        """The constant part of its requests; set by `Dispatcher` alone."""
        self.rate_limiter: RateLimiter | None = None
        """The limiter of its own rate, if it has one; set by `RateLimits` alone."""

    @property
    def is_served(self) -> bool:
        """Whether it is active and bound to its source."""
        return (
            self.subscription.status is SubscriptionStatus.ACTIVE and not self.state.missing_source
        )

    @property
    def breaker_state(self) -> BreakerState:
        return (
            BreakerState.CLOSED if self.failure_state is None else self.failure_state.breaker.state
        )

    @property
    def rests_until(self) -> float:
        """Until when an open breaker lets no message through, in wall time (s); 0 for others."""
        if self.failure_state is None or self.breaker_state is not BreakerState.OPEN:
            return 0.0
        return self.failure_state.rests_until

    @property
    def is_probed(self) -> bool:
        """Whether it gets one message at a time, until one succeeds."""
        return self.is_single or self.breaker_state is not BreakerState.CLOSED

    @property
    def error_count(self) -> int:
        """The number of failures since the last success."""
        return 0 if self.failure_state is None else self.failure_state.error_count

    @property
    def success_ratio(self) -> float | None:
        """The part of the last `OUTCOMES` attempts that has succeeded; None before the first."""
        count = self.outcomes.bit_length() - 1
        return (self.outcomes.bit_count() - 1) / count if count else None

    def change(self, changed: Subscription) -> None:
        """Replaces the subscription by one with the same identity and id."""
        before, self.subscription = self.subscription, changed
        if changed.status is not before.status:
            self.state.store(changed.status)

    def answered(self, *, is_slow: bool) -> None:
        """Notes whether the last attempt was slow."""
        self.is_slow = is_slow

    def succeeded(self, at: float) -> None:
        """Notes that a delivery succeeded at `at`, wall time in seconds."""
        self.last_success_at = at
        self._note(1)
        self.is_single = False
        if self.failure_state is not None:
            self.failure_state.end()

    def failed(self, error: str, at: float) -> FailureState:
        """Notes that a delivery failed at `at`, wall time in seconds."""
        if self.failure_state is None:
            self.failure_state = FailureState()
        self.failure_state.add(error, at)
        self._note(0)
        return self.failure_state

    def _note(self, outcome: int) -> None:
        outcomes = self.outcomes << 1 | outcome
        self.outcomes = outcomes & _OUTCOMES_MASK | _FIRST if outcomes >= _TOO_MANY else outcomes

    def limit_to_one(self) -> None:
        """Limits deliveries to one message at a time, until one succeeds."""
        self.is_single = True

    def block(self, blocking: Blocking) -> None:
        """Sets the message that its strict order waits for."""
        self.blocking = blocking

    def unblock(self) -> None:
        self.blocking = None

    def begin_anew(self) -> None:
        """Resets its failures and breaker; the message that its strict order waits for is due.
        The failures of that message stay counted."""
        self.failure_state = None
        self.is_single = False
        if self.blocking is not None:
            self.blocking = replace(self.blocking, not_before=0.0, due_ms=None)
