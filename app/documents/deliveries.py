"""The documents of delivery attempts and dead letters."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from .common import Resource, Table, Time
from .rabbithub import Condition

Outcome = Literal["delivered", "retried", "dead", "gone", "failed"]


class Try(TypedDict):
    subscription: str
    webhook_id: str
    number: int
    at: Time
    latency_ms: int
    status: int | None
    outcome: Outcome
    response: str
    callback: str
    response_body: str


class Attempt(Try):
    id: int


class ListedAttempt(Attempt):
    """An attempt in a list. `source` and `topic` are those of the subscription; null if it has
    ended."""

    source: Resource | None
    topic: str | None


class Request(TypedDict):
    """The request of an attempt. `size` is that of the whole body in bytes; a body that is no text
    is in base64."""

    method: Literal["POST"]
    url: str
    headers: dict[str, str]
    size: int
    truncated: bool
    body: NotRequired[str]
    body_base64: NotRequired[str]


class TryWithRequest(Try):
    """An attempt with its request. `request_missing` says why there is no request."""

    request: Request | None
    request_missing: str | None


class WholeAttempt(TryWithRequest):
    """An attempt with all attempts of its message, the newest first. `next_attempt_at` is the
    earliest time of the next one, `condition` that of the subscription; null if it has ended."""

    id: int
    source: Resource | None
    topic: str | None
    attempts: list[Attempt]
    next_attempt_at: Time | None
    condition: Condition | None


class Resent(TypedDict):
    """The result of sending a message again. `attempt` is that of a message that was posted at
    once."""

    way: Literal["replayed", "hastened", "sent"]
    attempt: TryWithRequest | None


class ResentAll(TypedDict):
    matching: int
    resendable: int
    resent: int


class Attempts(TypedDict):
    attempts: list[ListedAttempt]
    next_before: int | None


class AttemptCount(TypedDict):
    outcome: Outcome
    status: str
    attempts: int


class AttemptCounts(TypedDict):
    """How many attempts have an outcome and a class of status, such as `5xx` or `none`."""

    counts: list[AttemptCount]
    total: int
    is_complete: bool


class DeadLetter(TypedDict):
    id: str
    vhost: str
    webhook_id: str
    subscription: str
    callback: str | None
    source: Resource | None
    exchange: str
    routing_key: str
    reason: str
    attempts: int
    dead_at: Time | None
    size: int
    headers: Table
    content_type: str | None
    properties: Table


class WholeDeadLetter(DeadLetter):
    payload: str
    payload_encoding: Literal["string", "base64"]


class ReasonCount(TypedDict):
    reason: str
    dead_letters: int


class DeadLetters(TypedDict):
    """A page of dead letters. `reasons` has the most frequent reasons, without the number of
    attempts, of those that match whatever the filter `reason` says; `oldest_at` is of those that
    match."""

    dead_letters: list[DeadLetter]
    page: int
    page_size: int
    page_count: int
    filtered_count: int
    total_count: int
    is_complete: bool
    reasons: list[ReasonCount]
    oldest_at: Time | None


class Replayed(TypedDict):
    replayed: int
    skipped: int
    left: int
    is_complete: bool


class Deleted(TypedDict):
    deleted: int
    left: int
    is_complete: bool
