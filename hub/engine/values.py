"""The values that the hub and a message engine exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from ...core.definitions.archives import ArchiveReport
from ...core.message.model import Properties, Table


@dataclass(frozen=True, slots=True)
class ExchangeSpec:
    name: str
    type: str = "fanout"
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: Table = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A queue to declare. With an empty name the engine makes one (`amq.gen-...`)."""

    name: str
    durable: bool = True
    auto_delete: bool = False
    exclusive: bool = False
    arguments: Table = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueInfo:
    spec: QueueSpec
    messages_ready: int
    consumers: int


@dataclass(frozen=True, slots=True)
class BindingSpec:
    source: str
    destination: str
    destination_is_queue: bool = True
    routing_key: str = ""
    arguments: Table = field(default_factory=dict)


class PublishOutcome(Enum):
    """The outcome of a publish that the engine has confirmed or refused."""

    ROUTED = "routed"
    UNROUTED = "unrouted"
    """Confirmed, but routed to no queue."""
    REJECTED = "rejected"
    """A queue nacked it (overflow `reject-publish`, or RabbitMQ while it elects a leader)."""
    NOT_DURABLE = "not kept"
    """Nacked, because the disk is full."""


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcome of the messages of a batch that the engine has confirmed or refused."""

    unrouted: int = 0
    rejected: int = 0
    is_durable: bool = True
    """False if the disk is full: none of them is stored."""


@dataclass(frozen=True, slots=True)
class TransactionOutcome:
    """The outcome of a transaction; `is_durable` is False if the disk is full."""

    published: int
    unrouted: int
    is_durable: bool


@dataclass(frozen=True, slots=True)
class BatchPart:
    """Consecutive messages of a batch that differ only in their bodies."""

    routing_key: str
    properties: Properties
    bodies: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class SinglePublish:
    """A message for an exchange, or straight for a queue."""

    exchange: str
    routing_key: str
    properties: Properties
    body: bytes
    queue: str | None = None
    is_repeatable: bool = False
    """Whether a repetition with the same message_id and body is the same message, with the same
    `webhook-id`, for an engine without transactions."""


@dataclass(frozen=True, slots=True)
class StreamState:
    """The offsets of a stream's first stored message and of the next one to be stored.

    `incarnation` differs from that of every other stream, also of one that had the same name.
    `size_bytes` is None until it is known, `id` is in the stream's chunks.
    """

    first: int
    next_offset: int
    incarnation: str
    size_bytes: int | None
    id: int


@dataclass(frozen=True, slots=True)
class StreamArchives:
    """The last reports of a stream's archives by name; `waited_for` is the one without which
    retention drops nothing, `exceeded` the limit that is exceeded because of it."""

    reports: Mapping[str, ArchiveReport]
    waited_for: str | None
    exceeded: str | None
