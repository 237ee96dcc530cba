"""Subscriptions as JSON, for `/subscriptions` and `/api/hub` (docs/rabbithub.md).

The keys of RabbitHub's fork come first, with times in microseconds, then Warren's own, with times
in RFC 3339. Secrets are shown as `REDACTED`; an import leaves such a secret unchanged.
"""

from __future__ import annotations

from typing import Any

import msgspec.structs

from ...hub.delivery.failure_state import Blocking, FailureState
from ...hub.requests import Resource
from ...hub.subscriptions.active import ActiveSubscription
from ...hub.subscriptions.intent import VERIFY_NONE
from ...hub.subscriptions.options import as_parameters
from ...hub.subscriptions.subscription import Subscription
from ..responses.times import rfc3339
from .condition import condition

NODE = "warren"
"""The node name in RabbitHub's documents; Warren is always one node."""
REDACTED = "redacted"
BASIC_AUTH = "basic_auth"
MICROSECONDS = 1_000_000

Document = dict[str, Any]


def described(active: ActiveSubscription) -> Document:
    """Returns the whole document. Times are wall time; `lease_seconds` is the granted lease, not
    the remaining one."""
    subscription = active.subscription
    options = subscription.options
    return {
        **named(subscription),
        "lease_expiry_time_microsec": int(subscription.expires_at * MICROSECONDS),
        "lease_seconds": subscription.lease_seconds,
        "ha_mode": options.ha_mode or "none",
        "status": "active" if active.is_served else "inactive",
        "max_tps": options.max_tps,
        "pseudo_queue": _pseudo_queue(subscription),
        "outbound_auth": _outbound_auth(subscription),
        "contact": options.contact and msgspec.structs.asdict(options.contact),
        **_own(active),
    }


def named(subscription: Subscription) -> Document:
    """Returns the keys that identify a subscription."""
    return {
        **resource(subscription.source),
        "topic": subscription.topic,
        "callback": subscription.callback,
    }


def resource(found: Resource) -> Document:
    return {
        "vhost": found.vhost,
        "resource_type": found.word,
        "resource_name": found.name,
    }


def _own(active: ActiveSubscription) -> Document:
    subscription = active.subscription
    return {
        "id": subscription.id,
        "owner": subscription.owner,
        "expires_at": rfc3339(subscription.expires_at),
        "dialect": "websub" if subscription.is_websub else "rabbithub",
        "verification": _verification(subscription),
        "topic_url": subscription.topic_url or None,
        "sink": subscription.sink and resource(subscription.sink),
        "secret": REDACTED if subscription.keys.secret else None,
        "options": as_parameters(subscription.options),
        "condition": condition(active),
        "paused_reason": subscription.reason or None,
        "suspended_reason": active.state.missing_source or None,
        "breaker": active.breaker_state.value,
        "breaker_until": rfc3339(active.rests_until),
        "success_ratio": active.success_ratio,
        "blocked": active.blocking and _blocked(active.blocking),
        "errors": active.failure_state and _errors(active.failure_state),
        "last_success_at": rfc3339(active.last_success_at),
    }


def _verification(subscription: Subscription) -> str:
    """Returns how it was verified: by the callback, by a token, or not at all."""
    if subscription.sink is not None:
        return "token"
    return "callback" if subscription.options.is_verified else VERIFY_NONE


def _blocked(blocking: Blocking) -> Document:
    """Returns the message that blocks a strict order, and when it is tried again."""
    return {
        "webhook_id": blocking.webhook_id,
        "failures": blocking.failures,
        "next_attempt_at": rfc3339(blocking.not_before),
        "reason": _text(blocking.reason),
    }


def _text(response: str) -> str:
    """Replaces unpaired surrogates, which a target's response may contain and JSON can't."""
    return response.encode(errors="replace").decode()


def _errors(failure_state: FailureState) -> Document:
    """Returns the failures since the last success; the last error is shown after it too."""
    return {
        "error_count": failure_state.error_count,
        "first_error_time_microsec": int(failure_state.first_error_at * MICROSECONDS),
        "last_error_time_microsec": int(failure_state.last_error_at * MICROSECONDS),
        "last_error_msg": _text(failure_state.last_error),
    }


def _pseudo_queue(subscription: Subscription) -> str | None:
    """Returns the queue of the subscription; of a shortcut, its sink."""
    if subscription.sink is not None:
        return subscription.sink.name
    return subscription.queue if subscription.owns_queue else None


def _outbound_auth(subscription: Subscription) -> Document | None:
    if subscription.keys.basic_auth is None:
        return None
    return {"auth_type": BASIC_AUTH, "auth_config": REDACTED}


def running(active: ActiveSubscription) -> Document:
    """Returns the consumer of a subscription, in the form of RabbitHub's management add-on."""
    subscription = active.subscription
    return {
        **named(subscription),
        "queue": subscription.queue,
        "node": NODE,
        "status": "running",
        "id": subscription.id,
    }


def failing(active: ActiveSubscription) -> Document:
    """Returns the delivery errors of a subscription, as `/subscriptions/errors` shows them."""
    subscription = active.subscription
    return {
        "resource": subscription.source.vhost,
        "queue": subscription.source.name,
        "topic": subscription.topic,
        "callback": subscription.callback,
        **_errors(active.failure_state or FailureState()),
        "id": subscription.id,
    }
