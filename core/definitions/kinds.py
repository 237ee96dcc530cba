"""The kinds of definitions, each with its key and its value as bytes.

A key begins with its kind and is unique for the object; a value begins with its version.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from ..equivalence import resource
from ..model import Table
from .fields import arguments, number, text

VERSION = b"\x01"
"""Of every value; one that gets more fields gets a version of its own."""
AUTO_DELETE = 1
INTERNAL = 2


class Kind(IntEnum):
    """The first octet of a key."""

    VHOST = 1
    USER = 2
    PERMISSION = 3
    EXCHANGE = 4
    QUEUE = 5
    BINDING = 6


_BYTES = {kind: bytes((kind,)) for kind in Kind}


class VhostDefinition(NamedTuple):
    """A virtual host."""

    name: str

    def key(self) -> bytes:
        return _BYTES[Kind.VHOST] + text(self.name)

    def value(self) -> bytes:
        return VERSION


class UserDefinition(NamedTuple):
    """A user; its password is only ever kept as a hash in PHC form."""

    name: str
    password_hash: str
    tags: tuple[str, ...]

    def key(self) -> bytes:
        return _BYTES[Kind.USER] + text(self.name)

    def value(self) -> bytes:
        tags = b"".join(map(text, self.tags))
        return VERSION + text(self.password_hash) + number(len(self.tags)) + tags


class PermissionDefinition(NamedTuple):
    """What a user may do in a virtual host: three patterns of names."""

    user: str
    vhost: str
    configure: str
    write: str
    read: str

    def key(self) -> bytes:
        return permission_key(self.user, self.vhost)

    def value(self) -> bytes:
        return VERSION + text(self.configure) + text(self.write) + text(self.read)


class ExchangeDefinition(NamedTuple):
    """A durable exchange that was declared."""

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
    """A durable queue; messages know it by its id."""

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
    """A binding between durable ends. It is all key: nothing of it can change."""

    vhost: str
    source: str
    to_exchange: bool
    destination: str
    routing_key: str
    arguments: Table

    def key(self) -> bytes:
        return b"".join(
            (
                _BYTES[Kind.BINDING], text(self.vhost), text(self.source),
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
)


def permission_key(user: str, vhost: str) -> bytes:
    return _BYTES[Kind.PERMISSION] + text(user) + text(vhost)


def user_key(name: str) -> bytes:
    return _BYTES[Kind.USER] + text(name)


def exchange_key(vhost: str, name: str) -> bytes:
    return _BYTES[Kind.EXCHANGE] + text(vhost) + text(name)


def queue_key(vhost: str, name: str) -> bytes:
    return _BYTES[Kind.QUEUE] + text(vhost) + text(name)


def described(definition: Definition) -> str:
    """How errors name it."""
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
        case BindingDefinition():
            kind = "exchange" if definition.to_exchange else "queue"
            return (
                f"binding of {kind} '{definition.destination}' to exchange "
                f"'{definition.source}' by key '{definition.routing_key}' "
                f"in vhost '{definition.vhost}'"
            )
