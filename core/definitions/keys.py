"""Keys of definitions: a key begins with its kind and is unique for the object."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from .fields import text


class DefinitionKind(IntEnum):
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
    TRANSACTION = 16
    ARCHIVE = 17
    PARAMETER = 18
    GLOBAL_PARAMETER = 19
    PAUSED = 20


FACTS: Final = frozenset(
    {
        DefinitionKind.DELIVERY_COUNT,
        DefinitionKind.DEDUPLICATION,
        DefinitionKind.STREAM_START,
        DefinitionKind.CLOCK,
        DefinitionKind.TRANSACTION,
        DefinitionKind.ARCHIVE,
        DefinitionKind.PAUSED,
    }
)
"""Facts about queues, exchanges, virtual hosts and the clock: stored among the definitions, but
none of them."""

BYTES: Final = {kind: bytes((kind,)) for kind in DefinitionKind}
"""How keys of each kind begin."""


def of_user(name: str) -> tuple[bytes, ...]:
    """Returns how the keys of definitions that refer to a user begin."""
    refers = (
        DefinitionKind.PERMISSION,
        DefinitionKind.TOPIC_PERMISSION,
        DefinitionKind.USER_LIMITS,
    )
    return tuple(BYTES[kind] + text(name) for kind in refers)


def is_fact(key: bytes) -> bool:
    """Returns whether it is the key of a fact, not of a definition."""
    return bool(key) and key[0] in FACTS


def key_of(kind: DefinitionKind, *names: str) -> bytes:
    """Returns the key of an object of this kind, by the names that identify it."""
    return BYTES[kind] + b"".join(map(text, names))
