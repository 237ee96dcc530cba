"""Keys of definitions: a key begins with its kind and is unique for the object."""

from __future__ import annotations

from enum import IntEnum

from .fields import text


class Kind(IntEnum):
    """The first octet of a key."""

    VHOST = 1
    USER = 2
    PERMISSION = 3
    EXCHANGE = 4
    QUEUE = 5
    BINDING = 6
    POLICY = 7
    OPERATOR_POLICY = 8
    TOPIC_PERMISSION = 9
    VHOST_LIMITS = 10
    USER_LIMITS = 11
    DELIVERY_COUNT = 12
    DEDUPLICATION = 13
    STREAM_START = 14
    CLOCK = 15


FACTS = frozenset({Kind.DELIVERY_COUNT, Kind.DEDUPLICATION, Kind.STREAM_START, Kind.CLOCK})
"""Facts about queues, exchanges and the clock: stored among the definitions, but none of them."""

BYTES = {kind: bytes((kind,)) for kind in Kind}
"""How keys of each kind begin."""


def of_user(name: str) -> tuple[bytes, ...]:
    """The prefixes of the keys of definitions that refer to a user."""
    refers = (Kind.PERMISSION, Kind.TOPIC_PERMISSION, Kind.USER_LIMITS)
    return tuple(BYTES[kind] + text(name) for kind in refers)


def is_fact(key: bytes) -> bool:
    """Whether it is the key of a fact about a queue, an exchange or the clock."""
    return bool(key) and key[0] in FACTS


def vhost_key(name: str) -> bytes:
    return BYTES[Kind.VHOST] + text(name)


def topic_permission_key(user: str, vhost: str, exchange: str) -> bytes:
    return BYTES[Kind.TOPIC_PERMISSION] + text(user) + text(vhost) + text(exchange)


def policy_key(vhost: str, name: str) -> bytes:
    return BYTES[Kind.POLICY] + text(vhost) + text(name)


def operator_policy_key(vhost: str, name: str) -> bytes:
    return BYTES[Kind.OPERATOR_POLICY] + text(vhost) + text(name)


def vhost_limits_key(vhost: str) -> bytes:
    return BYTES[Kind.VHOST_LIMITS] + text(vhost)


def user_limits_key(user: str) -> bytes:
    return BYTES[Kind.USER_LIMITS] + text(user)


def permission_key(user: str, vhost: str) -> bytes:
    return BYTES[Kind.PERMISSION] + text(user) + text(vhost)


def user_key(name: str) -> bytes:
    return BYTES[Kind.USER] + text(name)


def exchange_key(vhost: str, name: str) -> bytes:
    return BYTES[Kind.EXCHANGE] + text(vhost) + text(name)


def queue_key(vhost: str, name: str) -> bytes:
    return BYTES[Kind.QUEUE] + text(vhost) + text(name)
