"""Decodes definitions.

An unknown kind or version was written by a newer Warren: ignoring it could grant rights or lose
messages, so it is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..errors import ConfigError
from .fields import Reader
from .keys import Kind
from .kinds import (
    AUTO_DELETE,
    DESCRIBED,
    INTERNAL,
    VERSION,
    BindingDefinition,
    Definition,
    ExchangeDefinition,
    OperatorPolicyDefinition,
    PermissionDefinition,
    PolicyDefinition,
    QueueDefinition,
    TopicPermissionDefinition,
    UserDefinition,
    UserLimitsDefinition,
    VhostDefinition,
    VhostLimitsDefinition,
)

Found = TypeVar("Found", bound=Definition)


class BadDefinition(ConfigError):
    """The definition under `key` can't be used; others can."""

    def __init__(self, key: bytes, explanation: str) -> None:
        super().__init__(explanation)
        self.key = key


class NewerDefinition(BadDefinition):
    """A definition written by a newer Warren; ignoring it could grant rights."""


def decode(key: bytes, value: bytes) -> Definition:
    """Decodes a definition. Raises `BadDefinition` naming it if it is damaged, `NewerDefinition` if
    a newer Warren wrote it."""
    read = _READERS.get(key[0]) if key else None
    if read is None:
        raise NewerDefinition(
            key,
            f"definition {shown(key)} is of a kind that this Warren does not know; "
            f"start the newer one that wrote it",
        )
    newest = _NEWEST.get(key[0], VERSION)
    if value[:1] > newest:
        raise NewerDefinition(
            key,
            f"definition {shown(key)} has version {value[0]}, this Warren knows up to "
            f"{newest[0]}; start the newer one that wrote it",
        )
    try:
        if value[:1] < VERSION:
            raise ValueError("it has no version")
        return read(Reader(key, 1), Reader(value, 1))
    except ValueError as error:
        raise BadDefinition(key, f"definition {shown(key)} is damaged: {error}") from error


def shown(key: bytes) -> str:
    """A key as readable text, for error messages: its kind and up to 100 of its bytes."""
    kind = Kind(key[0]).name.lower() if key and key[0] in _READERS else f"0x{key[:1].hex()}"
    readable = "".join(chr(octet) if 32 <= octet < 127 else "." for octet in key[1:101])
    return f"{kind} '{readable}'"


def _ended(key: Reader, value: Reader, found: Found) -> Found:
    key.end()
    value.end()
    return found


def _flags(value: Reader, known: int) -> int:
    flags = value.octet()
    if flags & ~known:
        raise ValueError(f"unknown flags {flags & ~known}")
    return flags


def _vhost(key: Reader, value: Reader) -> VhostDefinition:
    return _ended(key, value, VhostDefinition(key.text(), value.arguments()))


def _user(key: Reader, value: Reader) -> UserDefinition:
    name, password_hash = key.text(), value.text()
    tags = tuple(value.text() for _ in range(value.number()))
    return _ended(key, value, UserDefinition(name, password_hash, tags))


def _permission(key: Reader, value: Reader) -> PermissionDefinition:
    patterns = value.text(), value.text(), value.text()
    return _ended(key, value, PermissionDefinition(key.text(), key.text(), *patterns))


def _exchange(key: Reader, value: Reader) -> ExchangeDefinition:
    vhost, name = key.text(), key.text()
    flags = _flags(value, AUTO_DELETE | INTERNAL)
    type_name, arguments = value.text(), value.arguments()
    found = ExchangeDefinition(
        vhost, name, type_name, bool(flags & AUTO_DELETE), bool(flags & INTERNAL), arguments
    )
    return _ended(key, value, found)


def _queue(key: Reader, value: Reader) -> QueueDefinition:
    vhost, name = key.text(), key.text()
    auto_delete = bool(_flags(value, AUTO_DELETE))
    found = QueueDefinition(vhost, name, value.number(), auto_delete, value.arguments())
    return _ended(key, value, found)


def _binding(key: Reader, value: Reader) -> BindingDefinition:
    vhost, source, to_exchange = key.text(), key.text(), bool(_flags(key, 1))
    destination, routing_key = key.text(), key.text()
    found = BindingDefinition(vhost, source, to_exchange, destination, routing_key, key.arguments())
    return _ended(key, value, found)


def _policy(key: Reader, value: Reader) -> PolicyDefinition:
    head = key.text(), key.text(), value.text(), value.text(), value.signed()
    return _ended(key, value, PolicyDefinition(*head, value.arguments()))


def _operator_policy(key: Reader, value: Reader) -> OperatorPolicyDefinition:
    return OperatorPolicyDefinition(*_policy(key, value))


def _topic_permission(key: Reader, value: Reader) -> TopicPermissionDefinition:
    found = TopicPermissionDefinition(
        key.text(), key.text(), key.text(), value.text(), value.text()
    )
    return _ended(key, value, found)


def _vhost_limits(key: Reader, value: Reader) -> VhostLimitsDefinition:
    return _ended(key, value, VhostLimitsDefinition(key.text(), value.arguments()))


def _user_limits(key: Reader, value: Reader) -> UserLimitsDefinition:
    return _ended(key, value, UserLimitsDefinition(key.text(), value.arguments()))


_NEWEST: dict[int, bytes] = {Kind.VHOST: DESCRIBED}
_READERS: dict[int, Callable[[Reader, Reader], Definition]] = {
    Kind.VHOST: _vhost,
    Kind.USER: _user,
    Kind.PERMISSION: _permission,
    Kind.EXCHANGE: _exchange,
    Kind.QUEUE: _queue,
    Kind.BINDING: _binding,
    Kind.POLICY: _policy,
    Kind.OPERATOR_POLICY: _operator_policy,
    Kind.TOPIC_PERMISSION: _topic_permission,
    Kind.VHOST_LIMITS: _vhost_limits,
    Kind.USER_LIMITS: _user_limits,
}
