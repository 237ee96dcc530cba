"""Selects dead letters."""

from __future__ import annotations

from dataclasses import dataclass

from .dead_letter import DeadLetter


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Conditions on a dead letter; None matches all, and times are wall time in seconds.

    `owner` selects dead letters of this user's subscriptions, `queue` those of subscriptions to
    that queue, `reason` those whose reason contains the text. One without a time is older than any
    time.
    """

    ids: frozenset[str] | None = None
    owner: str | None = None
    subscription: str | None = None
    callback: str | None = None
    exchange: str | None = None
    queue: str | None = None
    routing_key: str | None = None
    webhook_id: str | None = None
    reason: str | None = None
    dead_before: float | None = None
    dead_after: float | None = None

    def is_visible(self, dead_letter: DeadLetter) -> bool:
        """Whether the owner may see it."""
        if self.owner is None:
            return True
        return (
            dead_letter.active is not None and dead_letter.active.subscription.owner == self.owner
        )

    def passes(self, dead_letter: DeadLetter) -> bool:
        """Whether a visible dead letter is selected."""
        envelope, dead_at = dead_letter.envelope, dead_letter.dead_at or 0.0
        return (
            (self.ids is None or dead_letter.id in self.ids)
            and self.subscription in (None, dead_letter.subscription_id)
            and self.exchange in (None, envelope.exchange)
            and self.routing_key in (None, envelope.routing_key)
            and self.webhook_id in (None, envelope.message_id)
            and (self.reason is None or self.reason.casefold() in dead_letter.reason.casefold())
            and (self.dead_before is None or dead_at < self.dead_before)
            and (self.dead_after is None or dead_at >= self.dead_after)
            and self._passes_subscription(dead_letter)
        )

    def _passes_subscription(self, dead_letter: DeadLetter) -> bool:
        if self.callback is None and self.queue is None:
            return True
        if dead_letter.active is None:
            return False
        found = dead_letter.active.subscription
        return self.callback in (None, found.callback) and (
            self.queue is None or (found.source.kind, found.source.name) == ("q", self.queue)
        )
