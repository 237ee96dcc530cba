"""Attempts to record."""

from __future__ import annotations

from typing import Any

from warrenmq.hub.attempts.attempt import Attempt, AttemptOutcome


def attempt(**changed: Any) -> Attempt:
    given: dict[str, Any] = {
        "subscription_id": "1" * 32,
        "webhook_id": "msg_1",
        "number": 1,
        "at": 1_800_000_000.25,
        "latency_ms": 12,
        "status": 200,
        "outcome": AttemptOutcome.DELIVERED,
        "response": "HTTP/1.1 200 OK",
        "callback": "http://a.b/",
        "body": "ok",
    }
    return Attempt(**{**given, **changed})
