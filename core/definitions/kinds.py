"""The kinds of definitions, each with its key and its value as bytes.

A value begins with its version.
"""

from __future__ import annotations

from typing import NamedTuple

from ..message.equivalence import resource
from ..message.model import Table
from .fields import arguments, number, signed, text
from .keys import (
    BYTES,
    Kind,
    exchange_key,
    operator_policy_key,
    permission_key,
    policy_key,
    queue_key,
    topic_permission_key,
    user_key,
    user_limits_key,
    vhost_key,
    vhost_limits_key,
)

VERSION = b"\x01"
"""The first byte of a value; a kind that gets more fields gets a new version."""
DESCRIBED = b"\x02"
"""The version of a virtual host with properties; one without is written as version 1."""
AUTO_DELETE = 1
INTERNAL = 2


_NO_PROPERTIES: Table = {}


class VhostDefinition(NamedTuple):
    """A virtual host and its properties (`description`, `tags`, `default_queue_type` ...)."""

    name: str
    properties: Table = _NO_PROPERTIES

    def key(self) -> bytes:
        return vhost_key(self.name)

    def value(self) -> bytes:
        return DESCRIBED + arguments(self.properties) if self.properties else VERSION


class UserDefinition(NamedTuple):
    """A user; its password is stored as a hash in PHC form only."""

    name: str
    password_hash: str
    tags: tuple[str, ...]

    def key(self) -> bytes:
        return user_key(self.name)

    def value(self) -> bytes:
        tags = b"".join(map(text, self.tags))
        return VERSION + text(self.password_hash) + number(len(self.tags)) + tags


class PermissionDefinition(NamedTuple):
    """The permissions of a user in a virtual host: three patterns of names."""

    user: str
    vhost: str
    configure: str
    write: str
    read: str

    def key(self) -> bytes:
        return permission_key(self.user, self.vhost)

    def value(self) -> bytes:
        return VERSION + text(self.configure) + text(self.write) + text(self.read)


class TopicPermissionDefinition(NamedTuple):
    """Which routing keys a user may write to, and bind, at a topic exchange: two patterns."""

    user: str
    vhost: str
    exchange: str
    write: str
    read: str

    def key(self) -> bytes:
        return topic_permission_key(self.user, self.vhost, self.exchange)

    def value(self) -> bytes:
        return VERSION + text(self.write) + text(self.read)


class PolicyDefinition(NamedTuple):
    """A policy: arguments for queues and exchanges with matching names."""

    vhost: str
    name: str
    pattern: str
    apply_to: str
    priority: int
    definition: Table

    def key(self) -> bytes:
        return policy_key(self.vhost, self.name)

    def value(self) -> bytes:
        head = text(self.pattern) + text(self.apply_to) + signed(self.priority)
        return VERSION + head + arguments(self.definition)


class OperatorPolicyDefinition(NamedTuple):
    """An operator policy, which is merged over the policy of users."""

    vhost: str
    name: str
    pattern: str
    apply_to: str
    priority: int
    definition: Table

    def key(self) -> bytes:
        return operator_policy_key(self.vhost, self.name)

    def value(self) -> bytes:
        head = text(self.pattern) + text(self.apply_to) + signed(self.priority)
        return VERSION + head + arguments(self.definition)


class VhostLimitsDefinition(NamedTuple):
    """The limits of a virtual host: numbers by name (`max-queues` ...)."""

    vhost: str
    limits: Table

    def key(self) -> bytes:
        return vhost_limits_key(self.vhost)

    def value(self) -> bytes:
        return VERSION + arguments(self.limits)


class UserLimitsDefinition(NamedTuple):
    """The limits of a user: numbers by name (`max-connections` ...)."""

    user: str
    limits: Table

    def key(self) -> bytes:
        return user_limits_key(self.user)

    def value(self) -> bytes:
        return VERSION + arguments(self.limits)


class ExchangeDefinition(NamedTuple):
    """A durable exchange."""

    vhost: str
    name: str
    type_name: str
    auto_delete: bool
    internal: bool
    arguments: Table

    def key(self) -> bytes:
        return exchange_key(self.vhost, self.name)

    def value(self) -> bytes:
        flags = AUTO_DELETE * self.auto_delete | INTERNAL * self.internal
        return VERSION + bytes((flags,)) + text(self.type_name) + arguments(self.arguments)


class QueueDefinition(NamedTuple):
    """A durable queue; message records refer to it by its id."""

    vhost: str
    name: str
    id: int
    auto_delete: bool
    arguments: Table

    def key(self) -> bytes:
        return queue_key(self.vhost, self.name)

    def value(self) -> bytes:
        return (
            VERSION
            + bytes((AUTO_DELETE * self.auto_delete,))
            + number(self.id)
            + arguments(self.arguments)
        )


class BindingDefinition(NamedTuple):
    """A binding between a durable exchange and a durable destination. All fields are in its key."""

    vhost: str
    source: str
    to_exchange: bool
    destination: str
    routing_key: str
    arguments: Table

    def key(self) -> bytes:
        return b"".join(
            (
                BYTES[Kind.BINDING], text(self.vhost), text(self.source),
                b"\x01" if self.to_exchange else b"\x00", text(self.destination),
                text(self.routing_key), arguments(self.arguments),
            )
        )  # fmt: skip

    def value(self) -> bytes:
        return VERSION


Definition = (
    VhostDefinition
    | UserDefinition
    | PermissionDefinition
    | ExchangeDefinition
    | QueueDefinition
    | BindingDefinition
    | PolicyDefinition
    | OperatorPolicyDefinition
    | TopicPermissionDefinition
    | VhostLimitsDefinition
    | UserLimitsDefinition
)


def described(definition: Definition) -> str:
    """The definition's name for error messages."""
    match definition:
        case VhostDefinition():
            return f"vhost '{definition.name}'"
        case UserDefinition():
            return f"user '{definition.name}'"
        case PermissionDefinition():
            return f"permission of user '{definition.user}' in vhost '{definition.vhost}'"
        case ExchangeDefinition():
            return resource("exchange", definition.name, definition.vhost)
        case QueueDefinition():
            return resource("queue", definition.name, definition.vhost)
        case PolicyDefinition():
            return resource("policy", definition.name, definition.vhost)
        case OperatorPolicyDefinition():
            return resource("operator policy", definition.name, definition.vhost)
        case TopicPermissionDefinition():
            return (
                f"topic permission of user '{definition.user}' for exchange "
                f"'{definition.exchange}' in vhost '{definition.vhost}'"
            )
        case VhostLimitsDefinition():
            return f"limits of vhost '{definition.vhost}'"
        case UserLimitsDefinition():
            return f"limits of user '{definition.user}'"
        case BindingDefinition():
            kind = "exchange" if definition.to_exchange else "queue"
            return (
                f"binding of {kind} '{definition.destination}' to exchange "
                f"'{definition.source}' by key '{definition.routing_key}' "
                f"in vhost '{definition.vhost}'"
            )
