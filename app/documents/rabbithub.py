"""Documents with the keys of RabbitHub: descriptions, subscriptions and their errors."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from msgspec import Meta

from .common import Kind, Paged, Resource, Table, Time

Condition = Literal[
    "suspended", "blocked", "open", "failing", "unconfirmed", "paused", "idle", "delivering"
]
Microseconds = Annotated[int, Meta(description="Wall time since 1970.")]


class Declared(TypedDict):
    type: Kind
    name: str
    vhost: str
    url: str


class Subscribed(TypedDict):
    mode: Literal["subscribe", "unsubscribe"]
    status: Literal["active", "pending", "ended"]
    topic: str
    callback: str
    lease_seconds: NotRequired[int]


class Published(TypedDict):
    published: int
    unrouted: int


Description = TypedDict(
    "Description",
    {
        "name": str,
        "description": str,
        "class": str,
        "parameters": list[Table],
        "facets": list[Table],
    },
)


class Blocked(TypedDict):
    webhook_id: str
    failures: int
    next_attempt_at: Time | None
    reason: str


class Errors(TypedDict):
    error_count: int
    first_error_time_microsec: Microseconds
    last_error_time_microsec: Microseconds
    last_error_msg: str


class Subscription(Resource):
    topic: str
    callback: str
    lease_expiry_time_microsec: Microseconds
    lease_seconds: int
    ha_mode: str
    status: Literal["active", "inactive"]
    max_tps: int
    pseudo_queue: str | None
    outbound_auth: Table | None
    contact: Table | None
    id: str
    owner: str
    expires_at: Time | None
    dialect: Literal["websub", "rabbithub"]
    verification: Literal["callback", "token", "none"]
    topic_url: str | None
    sink: Resource | None
    secret: str | None
    options: Table
    condition: Condition
    paused_reason: str | None
    suspended_reason: str | None
    breaker: Literal["closed", "open", "half-open"]
    breaker_until: Time | None
    success_ratio: float | None
    blocked: Blocked | None
    errors: Errors | None
    last_success_at: Time | None


class Subscriptions(Paged):
    """`conditions` has how many are in which condition, `failing_since` when the first of them
    began to fail; both are in pages alone."""

    subscriptions: list[Subscription]
    total_count: NotRequired[int]
    conditions: NotRequired[dict[str, int]]
    failing_since: NotRequired[Time | None]


class Failing(Errors):
    resource: str
    queue: str
    topic: str
    callback: str
    id: str


class FailingOnes(Paged):
    errors: list[Failing]
    total_count: NotRequired[int]


class Consumer(Resource):
    topic: str
    callback: str
    queue: str
    node: str
    status: str
    id: str


class Consumers(TypedDict):
    consumers: list[Consumer]


class Removed(TypedDict):
    consumers: list[Table]


class Imported(TypedDict):
    rabbithub_batch_results: list[Table]


class Environment(TypedDict):
    environment: Table
