"""The `x-stream-` arguments of a stream consumer: its first offset and its filter."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime
from typing import Final, NamedTuple

from ..errors import ChannelError, precondition_failed
from ..message.equivalence import type_name, value_text
from ..message.model import FieldValue, Table, Timestamp
from ..wire.properties import HEADERS, split
from ..wire.tables import decode_table
from .arguments import read_age_ms

OFFSET: Final = "x-stream-offset"
FILTER: Final = "x-stream-filter"
MATCH_UNFILTERED: Final = "x-stream-match-unfiltered"
FILTER_VALUE: Final = "x-stream-filter-value"
_NAMED_OFFSETS: Final = ("first", "last", "next")
_CACHE_MAX: Final = 1024


class ArrivedSince(NamedTuple):
    """Messages that arrived at this time or later, in milliseconds since 1970."""

    wall_ms: int


class MaxAge(NamedTuple):
    """Messages that arrived in the last `ms` milliseconds."""

    ms: int


Start = int | str | ArrivedSince | MaxAge
"""An offset (negative: counted from the end), `first`, `last`, `next`, or a time."""


def read_start(arguments: Table) -> Start:
    """Returns where the consumer starts. Raises `ChannelError` 406 for an invalid value."""
    if OFFSET not in arguments:
        return "next"
    value: FieldValue = arguments[OFFSET]
    match value:
        case bool():
            pass
        case Timestamp():
            return ArrivedSince(value * 1000)
        case int():
            return value
        case datetime():
            return ArrivedSince(int(value.timestamp() * 1000))
        case str() if value in _NAMED_OFFSETS:
            return value
        case str():
            age_ms = read_age_ms(value)
            if age_ms is not None:
                return MaxAge(age_ms)
    raise precondition_failed(
        f"invalid {OFFSET} '{value_text(value)}' of type '{type_name(value)}': first, last, next, "
        "a number, a timestamp or an interval such as 1h is needed"
    )


class StreamFilter:
    """Selects messages by their header `x-stream-filter-value`."""

    def __init__(self, values: Container[str], *, unfiltered: bool) -> None:
        self._values = values
        self._unfiltered = unfiltered
        self._cache: dict[bytes, bool] = {}

    def wants(self, properties: bytes) -> bool:
        """Returns whether a message with this encoded property list matches."""
        answer = self._cache.get(properties)
        if answer is None:
            if len(self._cache) >= _CACHE_MAX:
                self._cache.clear()
            value = _filter_value(properties)
            answer = self._unfiltered if value is None else value in self._values
            self._cache[properties] = answer
        return answer


def _filter_value(properties: bytes) -> str | None:
    headers = split(properties).get(HEADERS)
    if headers is None or FILTER_VALUE.encode() not in headers:
        return None
    value = decode_table(headers, 0, len(headers))[0].get(FILTER_VALUE)
    return value if isinstance(value, str) else None


def read_filter(arguments: Table) -> StreamFilter | None:
    """Returns the filter, None for none. Raises `ChannelError` 406 for an invalid value."""
    unfiltered = arguments.get(MATCH_UNFILTERED, False)
    if not isinstance(unfiltered, bool):
        raise _invalid(MATCH_UNFILTERED, unfiltered, "a boolean")
    if FILTER not in arguments:
        return None
    value = arguments[FILTER]
    values = value if isinstance(value, list) else [value]
    texts = [text for text in values if isinstance(text, str)]
    if not texts or len(texts) < len(values):
        raise _invalid(FILTER, value, "a string or an array of strings")
    return StreamFilter(frozenset(texts), unfiltered=unfiltered)


def _invalid(argument: str, value: FieldValue, needed: str) -> ChannelError:
    return precondition_failed(f"invalid {argument} '{value_text(value)}': {needed} is needed")
