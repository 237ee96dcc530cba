"""Subscriptions as `/subscriptions` and `/api/hub` show them (docs/rabbithub.md).

First the keys of RabbitHub's fork, its times in microseconds, then Warren's own, in RFC 3339. No
secret is ever among them: where there is one, `REDACTED` stands for it, which an import
understands as "what it is already".
"""

from __future__ import annotations

from typing import Any

import msgspec.structs

from ..hub.delivery.failure_state import Blocking, FailureState
from ..hub.requests import Resource
from ..hub.subscriptions.active import ActiveSubscription
from ..hub.subscriptions.intent import VERIFY_NONE
from ..hub.subscriptions.options import as_parameters
from ..hub.subscriptions.subscription import Subscription
from .times import rfc3339

NODE = "warren"
"""RabbitHub names the nodes that consume for a subscription; here there is one."""
REDACTED = "redacted"
BASIC_AUTH = "basic_auth"
MICROSECONDS = 1_000_000

Document = dict[str, Any]


def described(active: ActiveSubscription) -> Document:
    """Times are wall time; `lease_seconds` is what was granted, not what is left."""
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
    """What makes it this one and no other."""
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
        "paused_reason": subscription.reason or None,
        "suspended_reason": active.waits_for or None,
        "breaker": active.breaker_state.value,
        "blocked": active.blocking and _blocked(active.blocking),
        "errors": active.failure_state and _errors(active.failure_state),
        "last_success_at": rfc3339(active.last_success_at),
    }


def _verification(subscription: Subscription) -> str:
    """Who has agreed to it: the callback, whoever made a token, or nobody."""
    if subscription.sink is not None:
        return "token"
    return "callback" if subscription.options.is_verified else VERIFY_NONE


def _blocked(blocking: Blocking) -> Document:
    """The message that a strict order waits for, and until when."""
    return {
        "webhook_id": blocking.webhook_id,
        "failures": blocking.failures,
        "next_attempt_at": rfc3339(blocking.not_before),
        "reason": _text(blocking.reason),
    }


def _text(from_afar: str) -> str:
    """What a target has answered may hold half characters, which JSON can't say."""
    return from_afar.encode(errors="replace").decode()


def _errors(failure_state: FailureState) -> Document:
    """Failures since the last success; the last one stays known after it."""
    return {
        "error_count": failure_state.error_count,
        "first_error_time_microsec": int(failure_state.first_error_at * MICROSECONDS),
        "last_error_time_microsec": int(failure_state.last_error_at * MICROSECONDS),
        "last_error_msg": _text(failure_state.last_error),
    }


def _pseudo_queue(subscription: Subscription) -> str | None:
    """What its messages gather in; of a shortcut, what they go to."""
    if subscription.sink is not None:
        return subscription.sink.name
    return subscription.queue if subscription.owns_queue else None


def _outbound_auth(subscription: Subscription) -> Document | None:
    if subscription.keys.basic_auth is None:
        return None
    return {"auth_type": BASIC_AUTH, "auth_config": REDACTED}


def running(active: ActiveSubscription) -> Document:
    """What is consumed for it, as RabbitHub's management add-on tells it."""
    subscription = active.subscription
    return {
        **named(subscription),
        "queue": subscription.queue,
        "node": NODE,
        "status": "running",
        "id": subscription.id,
    }


def failing(active: ActiveSubscription) -> Document:
    """What went wrong with its deliveries, as `/subscriptions/errors` tells it."""
    subscription = active.subscription
    return {
        "resource": subscription.source.vhost,
        "queue": subscription.source.name,
        "topic": subscription.topic,
        "callback": subscription.callback,
        **_errors(active.failure_state or FailureState()),
        "id": subscription.id,
    }
