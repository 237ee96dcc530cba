"""The JSON documents that the HTTP interfaces answer with, as types of which `/openapi.json` makes
their schemas. RabbitHub's and RabbitMQ's have the keys of those programs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Microseconds = Annotated[int, Meta(description="Wall time since 1970.")]
Outcome = Literal["delivered", "retried", "dead", "gone"]
Kind = Literal["exchange", "queue"]
Letter = Annotated[Literal["x", "q"], Meta(description="An exchange or a queue.")]
Table = dict[str, Any]


class Problem(TypedDict):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    field: NotRequired[str]
    value: NotRequired[str]
    limit: NotRequired[str]


class RabbitError(TypedDict):
    error: str
    reason: str


class Liveness(TypedDict):
    status: Literal["ok"]


class Readiness(TypedDict):
    status: Literal["ok", "unavailable"]
    warnings: list[str]


class Check(TypedDict):
    status: Literal["ok", "failed"]
    reason: NotRequired[str]


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


class Resource(TypedDict):
    vhost: str
    resource_type: Kind
    resource_name: str


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
    paused_reason: str | None
    suspended_reason: str | None
    breaker: Literal["closed", "open", "half-open"]
    blocked: Blocked | None
    errors: Errors | None
    last_success_at: Time | None


class Paged(TypedDict):
    """The keys of paging are there if a page is asked for."""

    page: NotRequired[int]
    page_size: NotRequired[int]
    page_count: NotRequired[int]
    filtered_count: NotRequired[int]


class Subscriptions(Paged):
    subscriptions: list[Subscription]


class Failing(Errors):
    resource: str
    queue: str
    topic: str
    callback: str
    id: str


class FailingOnes(Paged):
    errors: list[Failing]


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


class Attempt(TypedDict):
    id: int
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


class Attempts(TypedDict):
    attempts: list[Attempt]
    next_before: int | None


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


class DeadLetters(TypedDict):
    dead_letters: list[DeadLetter]
    page: int
    page_size: int
    page_count: int
    filtered_count: int
    total_count: int
    is_complete: bool


class Replayed(TypedDict):
    replayed: int
    skipped: int
    left: int
    is_complete: bool


class Deleted(TypedDict):
    deleted: int
    left: int
    is_complete: bool


class Topic(TypedDict):
    url: str
    key: str
    subscribers: int
    content_type: str
    checked_at: Time | None
    changed_at: Time | None
    due_at: Time | None
    failures: int
    error: str
    notice: str


class TopicPage(Paged):
    items: list[Topic]
    item_count: int
    total_count: int


class Sink(TypedDict):
    type: Letter
    name: str


class Upstream(TypedDict):
    vhost: str
    name: str
    owner: str
    url: str
    hub: str | None
    sink: Sink
    routing_key: str | None
    lease_seconds: int
    signed: bool
    status: str
    reason: str
    hub_url: str | None
    self: str | None
    expires_at: Time | None
    renew_at: Time | None


class Capability(TypedDict):
    id: str
    vhost: str
    type: Letter
    name: str
    routing_key: str | None
    owner: str
    note: str
    made_at: Time
    expires_at: Time | None


class MadeCapability(TypedDict):
    id: str
    url: str


class Quarantine(TypedDict):
    messages: list[Table]
    definitions: list[Any]
    unreadable: list[Table]
    files: list[Table]


class Whoami(TypedDict):
    name: str
    tags: list[str]


class User(Whoami):
    password_hash: str
    hashing_algorithm: str
    limits: dict[str, int]


class VirtualHost(TypedDict):
    name: str
    description: str
    tags: list[str]
    default_queue_type: str
    protected_from_deletion: bool
    metadata: Table
    tracing: bool


class Permission(TypedDict):
    user: str
    vhost: str
    configure: str
    write: str
    read: str


class TopicPermission(TypedDict):
    user: str
    vhost: str
    exchange: str
    write: str
    read: str


Policy = TypedDict(
    "Policy",
    {
        "vhost": str,
        "name": str,
        "pattern": str,
        "apply-to": str,
        "definition": Table,
        "priority": int,
    },
)


class VirtualHostLimits(TypedDict):
    vhost: str
    value: dict[str, int]


class UserLimits(TypedDict):
    user: str
    value: dict[str, int]
