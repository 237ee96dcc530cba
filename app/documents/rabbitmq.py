"""The JSON documents in responses of RabbitMQ's management API, with RabbitMQ's keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from .common import Table


class RabbitError(TypedDict):
    error: str
    reason: str


class Whoami(TypedDict):
    name: str
    tags: list[str]


class User(Whoami):
    password_hash: str
    hashing_algorithm: str
    limits: dict[str, int]
    vhosts: Annotated[list[str], Meta(description="Where the user has permissions.")]


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


class ServerParameter(TypedDict):
    name: str
    value: Any


class Parameter(ServerParameter):
    component: str
    vhost: str


class PartialImport(TypedDict):
    left_out: Annotated[list[str], Meta(description="What can't be held here, and why.")]


class Routed(TypedDict):
    routed: bool


class ShownMessage(TypedDict):
    payload_bytes: int
    redelivered: bool
    exchange: str
    routing_key: str
    properties: Table
    payload: str
    payload_encoding: Literal["string", "base64"]


class GotMessage(ShownMessage):
    message_count: int


class PeekedMessage(ShownMessage):
    """A message of a queue that was shown and not taken."""

    position: int


class PeekedMessages(TypedDict):
    messages: list[PeekedMessage]
    ready: int


class MovedMessages(TypedDict):
    """The result of a move. `reason` says why the others are left, "" if none had to be."""

    moved: int
    left: int
    reason: str
