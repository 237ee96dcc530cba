"""The JSON bodies of requests to `/api`, as types, for the description of the interface.

They say what is accepted, not how it is read: `app/routes/api` reads bodies key by key, so that an
error can name the key. Other keys are ignored unless a type says otherwise, since clients send back
what they have read.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta, Struct

Integer = int | Annotated[str, Meta(pattern="^-?[0-9]{1,20}$")]
"""Older clients send numbers and booleans as strings."""
Seconds = (
    Annotated[float, Meta(ge=0)] | Annotated[str, Meta(pattern=r"^[0-9]{1,12}(\.[0-9]{1,9})?$")]
)
Flag = bool | Literal["true", "false"]
Words = list[str] | str
"""A list, or one string with commas."""
Table = dict[str, Any]
ShortText = Annotated[str, Meta(max_length=255)]


# -- RabbitMQ's paths


class Vhost(TypedDict):
    description: NotRequired[str]
    tags: NotRequired[Words]
    default_queue_type: NotRequired[Literal["classic", "quorum", "stream", "undefined", ""]]
    tracing: NotRequired[Literal[False, "false"]]
    protected_from_deletion: NotRequired[Flag]


class User(TypedDict):
    """A user: one of `password` and `password_hash`; without both nobody can log in with a
    password."""

    tags: Words
    password: NotRequired[str]
    password_hash: NotRequired[str]
    hashing_algorithm: NotRequired[str]


class Users(TypedDict):
    users: Words


class Permissions(TypedDict):
    configure: str
    write: str
    read: str


class TopicPermissions(TypedDict):
    exchange: str
    write: str
    read: str


Policy = TypedDict(
    "Policy",
    {
        "pattern": str,
        "definition": Table,
        "priority": NotRequired[Integer],
        "apply-to": NotRequired[str],
    },
)


class Limit(TypedDict):
    value: Integer


class ParameterValue(TypedDict):
    value: Any


class Queue(TypedDict):
    durable: NotRequired[Flag]
    auto_delete: NotRequired[Flag]
    arguments: NotRequired[Table | None]


class Exchange(TypedDict):
    type: NotRequired[str | None]
    durable: NotRequired[Flag]
    auto_delete: NotRequired[Flag]
    internal: NotRequired[Flag]
    arguments: NotRequired[Table | None]


class Binding(TypedDict):
    routing_key: NotRequired[ShortText]
    arguments: NotRequired[Table | None]


class Publish(TypedDict):
    properties: Table
    routing_key: ShortText
    payload: str
    payload_encoding: Literal["string", "base64"]


class Definitions(TypedDict):
    """Definitions in RabbitMQ's format; each key is a list of objects."""

    users: NotRequired[list[Table]]
    vhosts: NotRequired[list[Table]]
    permissions: NotRequired[list[Table]]
    topic_permissions: NotRequired[list[Table]]
    parameters: NotRequired[list[Table]]
    global_parameters: NotRequired[list[Table]]
    policies: NotRequired[list[Table]]
    queues: NotRequired[list[Table]]
    exchanges: NotRequired[list[Table]]
    bindings: NotRequired[list[Table]]


class Get(TypedDict):
    count: Integer
    ackmode: Literal[
        "ack_requeue_true", "ack_requeue_false", "reject_requeue_true", "reject_requeue_false"
    ]
    encoding: NotRequired[Literal["auto", "base64"]]
    truncate: NotRequired[Integer | None]


class StreamRead(TypedDict):
    """A read of a stream. `offset` is `first`, `last`, `next` or a number."""

    count: NotRequired[Integer]
    offset: NotRequired[Annotated[str, Meta(pattern="^(first|last|next|[0-9]{1,18})$")] | int]
    encoding: NotRequired[Literal["auto", "base64"]]
    truncate: NotRequired[Integer | None]


class QueueAction(TypedDict):
    action: Literal["sync", "cancel_sync"]


class Name(TypedDict):
    name: str


class Password(TypedDict):
    password: str


# -- this server's own


class Login(TypedDict):
    name: str
    password: str


class Setup(TypedDict):
    """The first administrator. `secret` is the end of the link that a new server prints."""

    secret: str
    name: str
    password: str


class Move(TypedDict):
    """A move of messages: exactly one of `queue` and `exchange`."""

    queue: NotRequired[str]
    exchange: NotRequired[str]
    routing_key: NotRequired[ShortText]
    count: NotRequired[
        Annotated[int, Meta(ge=1, le=1_000_000)]
        | Annotated[str, Meta(pattern="^([1-9][0-9]{0,5}|1000000)$")]
    ]


class Level(TypedDict):
    level: str


class Capability(TypedDict):
    vhost: str
    type: Literal["x", "q"]
    name: str
    expires_in_s: NotRequired[Integer | None]
    routing_key: NotRequired[str | None]
    note: NotRequired[str | None]


ResourcePath = Annotated[str, Meta(pattern=r"^[xq]/[^\r\n\u0000]{1,200}$")]


class Scope(TypedDict):
    """The scope of a token: exactly one of `read`, `write`, `tunnel` and `manage`."""

    read: NotRequired[ResourcePath]
    write: NotRequired[ResourcePath]
    tunnel: NotRequired[Annotated[str, Meta(min_length=1, max_length=63)]]
    manage: NotRequired[Literal["read", "write"]]
    path: NotRequired[Annotated[str, Meta(pattern="^[^/]", max_length=200)]]
    vhost: NotRequired[Annotated[str, Meta(pattern=r"^[^\u0000]*$")] | None]


class Token(TypedDict):
    name: str
    scopes: Annotated[list[Scope], Meta(min_length=1)]
    expires_in_s: NotRequired[
        Annotated[int, Meta(ge=1, le=365 * 86_400)]
        | Annotated[str, Meta(pattern="^[1-9][0-9]{0,6}$")]
    ]


class Feed(Struct, forbid_unknown_fields=True):
    url: str
    name: str | None = None
    vhost: str | None = None
    first: Integer | Literal["none"] | None = None
    min_interval_s: Integer | None = None
    selector: str | None = None
    hub: str | None = None


class FeedChange(Struct, forbid_unknown_fields=True):
    url: str | None = None
    min_interval_s: Integer | None = None
    selector: str | None = None
    hub: str | None = None


class Lease(TypedDict):
    lease_seconds: Integer


class Subscription(TypedDict):
    """A subscription, with the keys of a listing; those that only report state are ignored."""

    vhost: str
    resource_type: Literal["exchange", "queue", "x", "q"]
    resource_name: str
    topic: str | int
    callback: str | int


class SubscriptionChange(TypedDict):
    """A subscription, with the keys of a listing, without those that the path has."""

    lease_seconds: NotRequired[int | str | None]


class Subscriptions(TypedDict):
    """Subscriptions to be imported. Entries that can't be imported are counted and named in the
    answer."""

    subscriptions: list[Any]


class DeadLetters(Struct, forbid_unknown_fields=True):
    """Selects dead letters: the filters of the listing, and `ids`."""

    subscription: str | None = None
    callback: str | None = None
    exchange: str | None = None
    queue: str | None = None
    routing_key: str | None = None
    webhook_id: str | None = None
    reason: str | None = None
    vhost: str | None = None
    min_age_s: Seconds | None = None
    max_age_s: Seconds | None = None
    ids: list[str] | None = None


class DeletedLetters(DeadLetters, forbid_unknown_fields=True):
    """Selects dead letters to be deleted. Without a filter, `all` has to be true."""

    all: bool = False


class Resend(Struct, forbid_unknown_fields=True):
    """Selects attempts: the filters of the listing. Without one, `dry_run` or `all` has to be
    true."""

    subscription: str | None = None
    webhook_id: str | None = None
    outcome: str | None = None
    status: str | None = None
    since: str | None = None
    until: str | None = None
    callback: str | None = None
    source: str | None = None
    topic: str | None = None
    vhost: str | None = None
    ids: list[str] | None = None
    dry_run: bool | Literal["true", "false"] = False
    all: bool | Literal["true", "false"] = False


class Test(TypedDict):
    body: NotRequired[str | None]
    content_type: NotRequired[str | None]


class TopicPing(TypedDict):
    url: str


class Sink(TypedDict):
    type: Literal["x", "q"]
    name: str


class Upstream(TypedDict):
    """A subscription at another hub. `secret` is false for deliveries without signature."""

    url: str
    sink: Sink
    hub: NotRequired[str | None]
    routing_key: NotRequired[str | None]
    lease_seconds: NotRequired[Integer]
    secret: NotRequired[str | Literal[False] | None]
    username: NotRequired[str | None]
    password: NotRequired[str | None]


class PipelineRun(TypedDict):
    state: Literal["running", "done", "failed"]
    rows: NotRequired[Integer]
    lag: NotRequired[Integer | None]
    dropped: NotRequired[Integer]
    error: NotRequired[str | None]
    vhost: NotRequired[str | None]
    stream: NotRequired[str | None]


class PipelineArchive(TypedDict):
    offset: Integer
    manifest: NotRequired[str | None]
    incarnation: NotRequired[str | None]


class TransactionCommit(TypedDict):
    """A commit: attempts as partition, attempt and number of pieces."""

    attempts: list[list[int]]
