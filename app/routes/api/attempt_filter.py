"""Reads which attempts a request selects, and limits them to those that the user may see."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Final

from ....core.errors import not_found
from ....hub.attempts.attempt import AttemptFilter, AttemptOutcome
from ....hub.subscriptions.subscription import Subscription
from ...problems import Problem
from .call import Call
from .filters import Filters
from .required_tags import ADMINISTRATOR

SUBSCRIPTIONS_MAX: Final = 1_000
"""Maximum subscriptions in a single query."""
IDS_MAX: Final = 1_000
FILTERS: Final = (
    "subscription", "webhook_id", "outcome", "status", "since", "until", "callback", "source",
    "topic", "vhost",
)  # fmt: skip
NO_ANSWER: Final = "none"
_CLASSES: Final = {f"{first}xx": range(first * 100, first * 100 + 100) for first in range(1, 6)}


def condition(
    call: Call, filters: Filters, subscription_id: str | None, before: int | None, limit: int
) -> AttemptFilter:
    """Returns the filter of a request; raises `Problem` 400 for a filter that can't be used,
    `ChannelError` 404 for a subscription that the user may not see."""
    outcome = filters.word("outcome", [*AttemptOutcome])
    status = filters.text("status")
    return AttemptFilter(
        subscription_ids=_subscriptions(call, filters, subscription_id),
        webhook_id=filters.text("webhook_id"),
        outcome=AttemptOutcome(outcome) if outcome else None,
        before=before,
        limit=limit,
        since=_time(filters, "since"),
        until=_time(filters, "until"),
        statuses=None if status is None else _statuses(status),
        has_no_status=status == NO_ANSWER,
        ids=_ids(filters),
    )


def _ids(filters: Filters) -> list[int] | None:
    found = filters.names("ids")
    if found is None:
        return None
    wrong = next((one for one in found if not is_attempt_id(one)), None)
    if wrong is not None:
        raise Problem(400, f"'ids' has '{wrong[:80]}', it has to have ids of attempts")
    if len(found) > IDS_MAX:
        raise Problem(400, f"'ids' has {len(found)} ids, it can have at most {IDS_MAX}")
    return [int(one) for one in found]


def is_attempt_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _statuses(text: str) -> range | None:
    if text == NO_ANSWER:
        return None
    if text in _CLASSES:
        return _CLASSES[text]
    if len(text) == 3 and text.isascii() and text.isdigit() and 100 <= int(text) <= 599:
        return range(int(text), int(text) + 1)
    known = ", ".join([*_CLASSES, NO_ANSWER])
    raise Problem(400, f"'status' is '{text[:80]}', it has to be one of {known}, or a number from "
                  "100 to 599")  # fmt: skip


def _time(filters: Filters, key: str) -> float | None:
    text = filters.text(key)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            raise ValueError
        return found.timestamp()
    except (ValueError, OverflowError):
        wanted = "a time with its zone, such as 2026-11-22T20:14:34Z"
        raise Problem(400, f"'{key}' is '{text[:80]}', it has to be {wanted}") from None


def _subscriptions(
    call: Call, filters: Filters, subscription_id: str | None
) -> Collection[str] | None:
    """Returns the ids of the subscriptions whose attempts may be shown.

    None stands for all, including subscriptions that have ended.
    """
    passes, is_admin = _passes(filters), ADMINISTRATOR.has(call.user)
    if is_admin and passes is None:
        return None if subscription_id is None else [subscription_id]
    found = {
        active.subscription.id
        for active in call.context.hub.subscription_store.all()
        if (is_admin or active.subscription.owner == call.user.name)
        and (passes is None or passes(active.subscription))
    }
    if subscription_id is not None:
        if not (is_admin or owns(call, subscription_id)):
            raise not_found(f"no subscription '{subscription_id}'")
        return [subscription_id] if subscription_id in found else []
    if len(found) > SUBSCRIPTIONS_MAX:
        reason = (
            f"this is about {len(found)} subscriptions, more than {SUBSCRIPTIONS_MAX}: name one, "
            "as in ?subscription=ID, or narrow callback, source or vhost"
        )
        raise Problem(400, reason)
    return found


def owns(call: Call, subscription_id: str) -> bool:
    """Returns whether it is a subscription of the user."""
    active = call.context.hub.subscription_store.by_id(subscription_id)
    return active is not None and active.subscription.owner == call.user.name


def _passes(filters: Filters) -> Callable[[Subscription], bool] | None:
    """Returns the conditions on a subscription, which has to be in force; None without any."""
    callback, source, topic, vhost = map(filters.text, ("callback", "source", "topic", "vhost"))
    if callback is source is topic is vhost is None:
        return None
    return lambda found: (
        (callback is None or callback in found.callback)
        and source in (None, found.source.name)
        and topic in (None, found.topic)
        and vhost in (None, found.source.vhost)
    )
