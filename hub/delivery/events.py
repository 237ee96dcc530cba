"""Logs deliveries that fail: subscription, host of its callback and reason, never a URL, which may
contain credentials."""

from __future__ import annotations

import logging

from ...core.clock import Clock
from ..limited_log import LimitedLog
from ..subscriptions.active import ActiveSubscription
from .envelope import Envelope

log = logging.getLogger(__name__)


class DeliveryEvents:
    """Limits the lines of each kind for each subscription."""

    def __init__(self, clock: Clock) -> None:
        self._log = LimitedLog(log, clock)

    def retried(
        self, active: ActiveSubscription, failed: Envelope, reason: str, wait_s: float
    ) -> None:
        text = "subscription %s: attempt %d at %s failed: %s; the next in %.0f s"
        self._write(
            "retried", active, text, failed.failures, active.subscription.host, reason, wait_s
        )

    def backed_off(self, active: ActiveSubscription, error: Exception) -> None:
        text = "subscription %s: a message for %s is requeued: %r"
        self._write("requeued", active, text, active.subscription.host, error)

    def died(self, active: ActiveSubscription, failed: Envelope, reason: str) -> None:
        text = "subscription %s: message %s for %s is a dead letter: %s"
        self._write("died", active, text, failed.message_id, active.subscription.host, reason)

    def breaker_opened(self, active: ActiveSubscription, cool_down_s: float, reason: str) -> None:
        text = "subscription %s: deliveries to %s are suspended for %.0f s after many failures: %s"
        self._write("opened", active, text, active.subscription.host, cool_down_s, reason)

    def breaker_closed(self, active: ActiveSubscription) -> None:
        text = "subscription %s: %s accepts messages again"
        self._write("closed", active, text, active.subscription.host)

    def _write(self, kind: str, active: ActiveSubscription, text: str, *arguments: object) -> None:
        name = active.subscription.id
        self._log.write(logging.WARNING, f"{kind} {name}", text, name, *arguments)
