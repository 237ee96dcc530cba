"""One attempt to deliver one message."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from .kept_request import KeptRequest

if TYPE_CHECKING:
    from ..subscriptions.subscription import Subscription


class AttemptOutcome(StrEnum):
    DELIVERED = "delivered"
    RETRIED = "retried"
    """Failed; the message will be delivered again."""
    DEAD = "dead"
    """Failed for good: the message is in the dead-letter queue."""
    GONE = "gone"
    """The target answered 410, which ended the subscription."""
    FAILED = "failed"
    """A test, or a message that was sent again, was not accepted; it is not repeated."""


@dataclass(slots=True)  # not frozen: one is made for each delivery, and that would cost 1 us
class Attempt:
    """One attempt to deliver a message. `at` is wall time in seconds, `number` 1 for the first
    attempt of the message.

    `status` is None without an answer; `response` is then the reason, else the head of the answer,
    cut to `RESPONSE_CHARACTERS`, and `body` the beginning of its body. `callback` is the URL at
    the time.
    """

    subscription_id: str
    webhook_id: str
    number: int
    at: float
    latency_ms: int
    status: int | None
    outcome: AttemptOutcome
    response: str
    callback: str = ""
    body: str = ""
    subscription: Subscription | None = None
    """Set, as `age_s` of the message is, if the attempt is to be published; neither is stored."""
    age_s: float = 0.0
    request: KeptRequest | None = None
    """None if it is not kept, and in lists."""
    has_whole_request: bool = False
    """Whether a stored attempt has its request, with the whole body."""
    next_at: float | None = None
    """When the message is delivered again, in wall time."""


RESPONSE_CHARACTERS = 512


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """An attempt as it is stored; later ones have higher ids."""

    id: int
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class AttemptFilter:
    """Selects attempts; None selects all. `before` is the last id of the previous page."""

    subscription_ids: Collection[str] | None = None
    webhook_id: str | None = None
    outcome: AttemptOutcome | None = None
    before: int | None = None
    limit: int = 100
    since: float | None = None
    until: float | None = None
    """Wall time, itself not included."""
    statuses: range | None = None
    has_no_status: bool = False
    """Only attempts without an answer."""
    ids: Collection[int] | None = None


@dataclass(frozen=True, slots=True)
class AttemptCount:
    """How many attempts have an outcome and a class of status, 5 for 5xx, None without an
    answer."""

    outcome: AttemptOutcome
    status_class: int | None
    attempts: int
