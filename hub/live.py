"""A subscription that is being served."""

from __future__ import annotations

from .engine.port import Consumption
from .subscription import Subscription


class Live:
    """Mutable on purpose: a renewal replaces `subscription` under deliveries in flight."""

    __slots__ = ("consumption", "is_over", "is_slow", "subscription")

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.consumption: Consumption | None = None
        self.is_over = False
        self.is_slow = False
        """Whether its last delivery took long: the next one waits for a slow slot."""

    async def cancel(self) -> None:
        """Stops deliveries; those in flight stay valid."""
        consumption, self.consumption = self.consumption, None
        if consumption is not None:
            await consumption.cancel()
