"""The keys of a policy's definition: their valid values, and where they apply.

A key is an argument without its `x-`, with the bounds of the argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ..errors import WarrenError
from ..message.equivalence import type_name, value_text
from ..message.model import FieldValue, Table
from ..queue.arguments import MAX_TTL_MS, SEGMENT_BYTES_MAX, has_argument, read_age_ms

Check = Callable[[FieldValue], str | None]
"""Returns what is wrong with a value, None if nothing is."""

DELAYED_MESSAGE: Final = "delayed-message"
_ANY_NUMBER: Final = 2**63 - 1
_CLUSTER_KEYS: Final = "ha-"
"""Prefix of mirroring keys, which old clients still set; without effect, as there is one node."""


class PolicyError(WarrenError):
    """An invalid policy."""


class _Key(NamedTuple):
    check: Check
    operator: bool = False
    """Whether operator policies may have it too."""


def _whole(low: int, high: int) -> Check:
    def check(value: FieldValue) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return f"a whole number is needed, not {value_text(value)} ({type_name(value)})"
        return None if low <= value <= high else f"{value} is out of range {low} to {high}"

    return check


def _choice(*allowed: str) -> Check:
    def check(value: FieldValue) -> str | None:
        if value in allowed:
            return None
        return f"'{value_text(value)}' is not one of {', '.join(allowed)}"

    return check


def _text(value: FieldValue) -> str | None:
    if not isinstance(value, str):
        return f"a text is needed, not {value_text(value)} ({type_name(value)})"
    size = len(value.encode())
    return None if size <= 255 else f"it has {size} bytes, at most 255"


def _name(value: FieldValue) -> str | None:
    wrong = _text(value)
    if wrong is None and ("\r" in value_text(value) or "\n" in value_text(value)):
        return "a name has no line end"
    return wrong


def _own_name(value: FieldValue) -> str | None:
    return "it must not be empty" if value == "" else _name(value)


def _age(value: FieldValue) -> str | None:
    if isinstance(value, str) and read_age_ms(value) is not None:
        return None
    return f"'{value_text(value)}' is not a valid age (a number followed by Y, M, D, h, m or s)"


def _boolean(value: FieldValue) -> str | None:
    return None if isinstance(value, bool) else f"true or false is needed, not {value_text(value)}"


def _only_argument(argument: str) -> Check:
    return lambda _: f"it can't be set by a policy; declare the queue with {argument}"


_KEYS: Final[dict[str, _Key]] = {
    "message-ttl": _Key(_whole(0, MAX_TTL_MS), operator=True),
    "expires": _Key(_whole(1, MAX_TTL_MS), operator=True),
    "max-length": _Key(_whole(0, _ANY_NUMBER), operator=True),
    "max-length-bytes": _Key(_whole(0, _ANY_NUMBER), operator=True),
    "max-in-memory-length": _Key(_whole(0, _ANY_NUMBER), operator=True),
    "max-in-memory-bytes": _Key(_whole(0, _ANY_NUMBER), operator=True),
    "delivery-limit": _Key(_whole(-1, _ANY_NUMBER), operator=True),
    "consumer-timeout": _Key(_whole(0, MAX_TTL_MS), operator=True),
    "overflow": _Key(_choice("drop-head", "reject-publish", "reject-publish-dlx"), operator=True),
    "queue-version": _Key(_whole(1, 2), operator=True),
    "queue-mode": _Key(_choice("default", "lazy")),
    "dead-letter-exchange": _Key(_name),
    "dead-letter-routing-key": _Key(_text),
    "dead-letter-strategy": _Key(_choice("at-most-once", "at-least-once")),
    "delayed-retry-type": _Key(_choice("disabled", "all", "failed", "returned")),
    "delayed-retry-min": _Key(_whole(0, MAX_TTL_MS)),
    "delayed-retry-max": _Key(_whole(0, MAX_TTL_MS)),
    "max-age": _Key(_age),
    "stream-max-segment-size-bytes": _Key(_whole(0, SEGMENT_BYTES_MAX)),
    "stream-filter-size-bytes": _Key(_whole(16, 255)),
    "archive": _Key(_own_name),
    "max-segment-size": _Key(_whole(0, SEGMENT_BYTES_MAX)),
    "queue-leader-locator": _Key(_text),
    "queue-master-locator": _Key(_text),
    "initial-cluster-size": _Key(_whole(0, _ANY_NUMBER)),
    "target-group-size": _Key(_whole(0, _ANY_NUMBER), operator=True),
    "alternate-exchange": _Key(_name),
    DELAYED_MESSAGE: _Key(_boolean),
    "federation-upstream": _Key(_text),
    "federation-upstream-set": _Key(_text),
    "max-priority": _Key(_only_argument("x-max-priority")),
    "single-active-consumer": _Key(_only_argument("x-single-active-consumer")),
}
_NOT_TOGETHER: Final = ("federation-upstream", "federation-upstream-set")
_WITHOUT_EFFECT: Final = frozenset(
    {"queue-leader-locator", "queue-master-locator", "initial-cluster-size", "target-group-size",
     "max-segment-size", *_NOT_TOGETHER}
)  # fmt: skip
"""Keys of RabbitMQ for several nodes or for its files, and for federation."""


def check_definition(definition: Table, *, operator: bool) -> None:
    """Raises `PolicyError` with the key, its value and the valid ones."""
    if not definition:
        raise PolicyError("its definition is empty: it needs at least one key")
    for key, value in definition.items():
        wrong = _wrong(key, value, operator=operator)
        if wrong is not None:
            raise PolicyError(f"{key}: {wrong}")
    if all(key in definition for key in _NOT_TOGETHER):
        raise PolicyError(f"{' and '.join(_NOT_TOGETHER)} can't be set together")


def is_unknown(key: str) -> bool:
    """Returns whether no policy here can have the key."""
    return key not in _KEYS and not key.startswith(_CLUSTER_KEYS)


def _wrong(key: str, value: FieldValue, *, operator: bool) -> str | None:
    if key.startswith(_CLUSTER_KEYS):
        return "operator policies don't support it" if operator else None
    found = _KEYS.get(key)
    if found is None:
        bare = key.removeprefix("x-")
        return f"unknown key; did you mean {bare}?" if bare in _KEYS else "unknown key"
    if operator and not found.operator:
        return "operator policies don't support it"
    return found.check(value)


def without_effect(definition: Table) -> list[str]:
    """Returns the keys that are stored but have no effect here."""
    return [key for key in definition if key.startswith(_CLUSTER_KEYS) or key in _WITHOUT_EFFECT]


def is_for(definition: Table, queue_type: str) -> bool:
    """Returns whether queues of a type support all keys of a definition.

    Otherwise the whole policy does not apply to them, as in RabbitMQ: half of it could be the wrong
    half (a limit without its overflow).
    """
    if queue_type == "quorum" and definition.get("overflow") == "reject-publish-dlx":
        return False
    return all(has_argument(queue_type, f"x-{key}") for key in definition)
