"""Merges a policy with an operator policy, and both with a queue's arguments.

Numbers are limits, so the smaller one holds. For all other keys the argument holds, since the
client that declared the queue relies on it; between the two policies the operator's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from ..message.model import FieldValue, Table
from ..queue.arguments import AT_LEAST_ONCE, RETRY_MAX_MS, RETRY_MIN_MS, read_age_ms
from ..queue.rules import PLAIN, RetryDelay, Rules

Combine = Callable[[Any, Any], Any]
"""Combines an argument with a policy's value, or an operator policy's with a policy's."""


def _first(one: FieldValue, other: FieldValue) -> FieldValue:
    return one


def _lower_limit(one: int, other: int) -> int:
    """Returns the lower of two delivery limits; a negative one is no limit."""
    return max(one, other) if min(one, other) < 0 else min(one, other)


def _shorter_timeout(one: int, other: int) -> int:
    """Returns the shorter of two timeouts; 0 is no timeout."""
    return max(one, other) if min(one, other) == 0 else min(one, other)


def _shorter_age(one: str, other: str) -> str:
    return min(one, other, key=lambda text: read_age_ms(text) or 0)


_COMBINED: Final[dict[str, Combine]] = {
    "message-ttl": min,
    "expires": min,
    "max-length": min,
    "max-length-bytes": min,
    "max-in-memory-length": min,
    "max-in-memory-bytes": min,
    "delivery-limit": _lower_limit,
    "consumer-timeout": _shorter_timeout,
    "delayed-retry-min": min,
    "delayed-retry-max": min,
    "max-age": _shorter_age,
    "stream-max-segment-size-bytes": min,
    "stream-filter-size-bytes": min,
}
"""How the numeric keys are combined."""


class _Field(NamedTuple):
    key: str
    name: str
    read: Callable[[Any], Any] = lambda value: value


_FIELDS: Final = (
    _Field("message-ttl", "message_ttl_ms"),
    _Field("expires", "expires_ms"),
    _Field("max-length", "max_length"),
    _Field("max-length-bytes", "max_length_bytes"),
    _Field("overflow", "overflow"),
    _Field("dead-letter-exchange", "dead_letter_exchange"),
    _Field("dead-letter-routing-key", "dead_letter_routing_key"),
    _Field("dead-letter-strategy", "at_least_once", lambda value: value == AT_LEAST_ONCE),
    _Field("delivery-limit", "delivery_limit"),
    _Field("consumer-timeout", "consumer_timeout_ms"),
    _Field("max-age", "max_age_ms", read_age_ms),
    _Field("stream-max-segment-size-bytes", "segment_bytes"),
    _Field("stream-filter-size-bytes", "filter_bytes"),
    _Field("archive", "archive"),
)
"""The keys that set one field of `Rules` each."""
_RETRY_KEYS: Final = ("delayed-retry-type", "delayed-retry-min", "delayed-retry-max")


def merged(policy: Mapping[str, FieldValue], operator: Mapping[str, FieldValue]) -> Table:
    """Returns one definition for a policy and an operator policy; either may be empty."""
    table = {**policy, **operator}
    for key in policy.keys() & operator.keys():
        combine = _COMBINED.get(key, _first)
        table[key] = combine(operator[key], policy[key])
    return table


def effective_rules(
    rules: Rules | None, arguments: Table, definition: Mapping[str, FieldValue]
) -> Rules | None:
    """Returns the rules of a queue's arguments with a definition (of `merged`) applied to them.

    A value that is set in `arguments` is combined with the definition's; a default is replaced.
    Returns None for a plain queue.
    """
    base = rules or PLAIN
    changes = {
        field.name: field.read(_effective(field.key, arguments, definition))
        for field in _FIELDS
        if field.key in definition
    }
    if any(key in definition for key in _RETRY_KEYS):
        changes["retry_delay"] = _retry_delay(arguments, definition)
    found = replace(base, **changes)
    return None if found == PLAIN else found


def _effective(
    key: str, arguments: Table, definition: Mapping[str, FieldValue], default: FieldValue = None
) -> Any:
    argument, value = arguments.get(f"x-{key}"), definition.get(key)
    if argument is None:
        return default if value is None else value
    return argument if value is None else _COMBINED.get(key, _first)(argument, value)


def _retry_delay(arguments: Table, definition: Mapping[str, FieldValue]) -> RetryDelay | None:
    kind = _effective("delayed-retry-type", arguments, definition, "disabled")
    if kind == "disabled":
        return None
    min_ms = _effective("delayed-retry-min", arguments, definition, RETRY_MIN_MS)
    max_ms = _effective("delayed-retry-max", arguments, definition, RETRY_MAX_MS)
    return RetryDelay(kind, min_ms, max(min_ms, max_ms))
