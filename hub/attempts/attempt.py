"""One attempt to deliver one message."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    DELIVERED = "delivered"
    RETRIED = "retried"
    """Failed, and to be tried again."""
    DEAD = "dead"
    """Failed for good: the message is in the dead-letter queue."""
    GONE = "gone"
    """The target answered 410, which ended the subscription."""


@dataclass(slots=True)  # not frozen: one is made for each delivery, and that would cost 1 us
class Attempt:
    """`at` is wall time in seconds, `number` 1 for the first attempt of the message.

    `status` is None where no answer came; `response` is then the reason, else the head of the
    answer, cut to `RESPONSE_CHARACTERS`, and `body` the beginning of what followed it. `callback`
    is the URL at the time.
    """

    subscription_id: str
    webhook_id: str
    number: int
    at: float
    latency_ms: int
    status: int | None
    outcome: Outcome
    response: str
    callback: str = ""
    body: str = ""


RESPONSE_CHARACTERS = 512


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """An attempt as it is stored; later ones have higher ids."""

    id: int
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class AttemptFilter:
    """Which attempts to look for, None meaning all; `before` is the id that the last page ended
    with."""

    subscription_ids: Collection[str] | None = None
    webhook_id: str | None = None
    outcome: Outcome | None = None
    before: int | None = None
    limit: int = 100
