"""A subscription that is being served."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..delivery.breaker import State
from ..delivery.failure_state import Blocking, FailureState
from ..engine.port import Consumption
from .subscription import Status, Subscription

if TYPE_CHECKING:
    from ..delivery.rate_limits import RateLimiter
    from ..delivery.request import RequestTemplate


class ActiveSubscription:
    """Mutable on purpose: a renewal replaces `subscription` under deliveries in flight.

    Ten thousand idle ones must stay small: what only some have is None for the others.
    """

    __slots__ = (
        "blocking",
        "consumption",
        "failure_state",
        "is_over",
        "is_single",
        "is_slow",
        "is_suspended",
        "last_success_at",
        "rate_limiter",
        "request_template",
        "subscription",
        "waits_for",
    )  # fmt: skip

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.consumption: Consumption | None = None
        self.is_over = False
        self.is_slow = False
        """Whether its last delivery took long: the next one waits for a slow slot."""
        self.is_single = False
        """Whether it gets one message at a time until one succeeds: a delivery timed out, or too
        much is waiting already."""
        self.is_suspended = False
        """Whether its consumption is suspended: set and reset by `Attacher`."""
        self.request_template: RequestTemplate | None = None
        """The constant part of its requests; made at the first message."""
        self.rate_limiter: RateLimiter | None = None
        """The limiter of its own rate, if it has one."""
        self.failure_state: FailureState | None = None
        """None until a delivery fails."""
        self.blocking: Blocking | None = None
        """The message that its strict order waits for."""
        self.waits_for = ""
        """Why it is not bound: its source is missing; empty while it is bound."""
        self.last_success_at = 0.0
        """Wall time in seconds, 0 before the first success since the start."""

    @property
    def is_served(self) -> bool:
        """Whether it is active and bound to its source."""
        return self.subscription.status is Status.ACTIVE and not self.waits_for

    @property
    def breaker_state(self) -> State:
        return State.CLOSED if self.failure_state is None else self.failure_state.breaker.state

    @property
    def is_probed(self) -> bool:
        """Whether one message at a time has to tell how its callback is."""
        return self.is_single or self.breaker_state is not State.CLOSED

    @property
    def error_count(self) -> int:
        """Failures since the last success."""
        return 0 if self.failure_state is None else self.failure_state.error_count

    def succeeded(self, at: float) -> None:
        """`at` is wall time in seconds, as below."""
        self.last_success_at = at
        self.is_single = False
        if self.failure_state is not None:
            self.failure_state.end()

    def failed(self, error: str, at: float) -> FailureState:
        if self.failure_state is None:
            self.failure_state = FailureState()
        self.failure_state.add(error, at)
        return self.failure_state

    def begin_anew(self) -> None:
        """Resets its failures and breaker; the message that its strict order waits for is due.
        The failures of that message stay counted."""
        self.failure_state = None
        self.is_single = False
        if self.blocking is not None:
            self.blocking = replace(self.blocking, not_before=0.0, due_ms=None)

    def takes(self) -> bool:
        """Whether messages are to be delivered now."""
        is_active = self.subscription.status is Status.ACTIVE
        return is_active and not self.is_suspended and not self.is_over

    async def cancel(self) -> None:
        """Stops deliveries, for good where it is over; those in flight stay valid."""
        consumption, self.consumption = self.consumption, None
        if consumption is not None:
            await (consumption.end() if self.is_over else consumption.cancel())
