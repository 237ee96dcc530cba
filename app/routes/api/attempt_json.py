"""Attempts to deliver as JSON."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from ....hub.attempts.attempt import Attempt, AttemptOutcome, StoredAttempt
from ....hub.attempts.kept_request import KeptRequest
from ....hub.subscriptions.active import ActiveSubscription
from ...responses.times import rfc3339
from ...subscriptions.condition import condition
from ...subscriptions.document import resource

NOT_KEPT = "requests like this are not kept: setting attempt_requests"


def described(stored: StoredAttempt) -> dict[str, Any]:
    return {"id": stored.id, **attempt_json(stored.attempt)}


def listed(stored: StoredAttempt, active: ActiveSubscription | None) -> dict[str, Any]:
    """Returns an attempt with what its subscription is to; null if that has ended."""
    return {**described(stored), **_subscribed_to(active)}


def _subscribed_to(active: ActiveSubscription | None) -> dict[str, Any]:
    if active is None:
        return {"source": None, "topic": None}
    subscription = active.subscription
    return {"source": resource(subscription.source), "topic": subscription.topic}


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "subscription": attempt.subscription_id,
        "webhook_id": attempt.webhook_id,
        "number": attempt.number,
        "at": rfc3339(attempt.at),
        "latency_ms": attempt.latency_ms,
        "status": attempt.status,
        "outcome": attempt.outcome.value,
        "response": attempt.response,
        "callback": attempt.callback,
        "response_body": attempt.body,
    }


def tried(attempt: Attempt) -> dict[str, Any]:
    """Returns an attempt with its request."""
    request = attempt.request
    return {
        **attempt_json(attempt),
        "request": None if request is None else _request(request),
        "request_missing": NOT_KEPT if request is None else None,
    }


def whole(
    stored: StoredAttempt, tries: list[StoredAttempt], active: ActiveSubscription | None
) -> dict[str, Any]:
    """Returns an attempt with its request, all attempts of its message, the earliest time of the
    next one, and the condition of the subscription, for which it may wait."""
    return {
        "id": stored.id,
        **tried(stored.attempt),
        **_subscribed_to(active),
        "attempts": [described(one) for one in tries],
        "next_attempt_at": _next_at(tries[0].attempt, active) if tries else None,
        "condition": active and condition(active),
    }


def _next_at(last: Attempt, active: ActiveSubscription | None) -> str | None:
    """Returns when the message of its last attempt is delivered again at the earliest."""
    if last.outcome is not AttemptOutcome.RETRIED or not last.next_at:
        return None
    return rfc3339(max(last.next_at, active.rests_until if active else 0.0))


def _request(request: KeptRequest) -> dict[str, Any]:
    found: dict[str, Any] = {
        "method": "POST",
        "url": request.url,
        "headers": request.headers,
        "size": request.size,
        "truncated": not request.is_whole,
    }
    try:
        return {**found, "body": request.body.decode()}
    except UnicodeDecodeError:
        return {**found, "body_base64": b64encode(request.body).decode()}
