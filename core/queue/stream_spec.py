"""Where a consumer of a stream begins, and which messages it wants: its `x-stream-` arguments."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime
from typing import NamedTuple

from ..errors import ChannelError, precondition_failed
from ..message.equivalence import shown, type_name
from ..message.model import FieldValue, Table
from ..wire.properties import HEADERS, split
from ..wire.tables import decode_table
from .arguments import read_age_ms

OFFSET = "x-stream-offset"
FILTER = "x-stream-filter"
MATCH_UNFILTERED = "x-stream-match-unfiltered"
FILTER_VALUE = "x-stream-filter-value"
_PLACES = ("first", "last", "next")
_REMEMBERED_MAX = 1024


class Since(NamedTuple):
    """Messages that came at this time of day or later, in milliseconds since 1970."""

    wall_ms: int


class Ago(NamedTuple):
    """Messages that came so long ago or later."""

    ms: int


Start = int | str | Since | Ago
"""An offset (negative: so many before the end), `first`, `last`, `next`, or a time."""


def read_start(arguments: Table) -> Start:
    """Raises `ChannelError` 406 for a value that is no place in a stream."""
    if OFFSET not in arguments:
        return "next"
    value: FieldValue = arguments[OFFSET]
    match value:
        case bool():
            pass
        case int():
            return value
        case datetime():
            return Since(int(value.timestamp() * 1000))
        case str() if value in _PLACES:
            return value
        case str():
            age_ms = read_age_ms(value)
            if age_ms is not None:
                return Ago(age_ms)
    raise precondition_failed(
        f"invalid {OFFSET} '{shown(value)}' of type '{type_name(value)}': first, last, next, a "
        f"number, a timestamp or an interval such as 1h is needed"
    )


class Filter:
    """Which messages a consumer wants, by the value that their publishers gave them."""

    def __init__(self, values: Container[str], *, unfiltered: bool) -> None:
        self._values = values
        self._unfiltered = unfiltered
        self._answers: dict[bytes, bool] = {}

    def wants(self, properties: bytes) -> bool:
        """`properties` is the list of a message as it came."""
        answer = self._answers.get(properties)
        if answer is None:
            if len(self._answers) >= _REMEMBERED_MAX:
                self._answers.clear()
            value = _filter_value(properties)
            answer = self._unfiltered if value is None else value in self._values
            self._answers[properties] = answer
        return answer


def _filter_value(properties: bytes) -> str | None:
    headers = split(properties).get(HEADERS)
    if headers is None or FILTER_VALUE.encode() not in headers:
        return None
    value = decode_table(headers, 0, len(headers))[0].get(FILTER_VALUE)
    return value if isinstance(value, str) else None


def read_filter(arguments: Table) -> Filter | None:
    """None for a consumer that wants everything. Raises `ChannelError` 406."""
    unfiltered = arguments.get(MATCH_UNFILTERED, False)
    if not isinstance(unfiltered, bool):
        raise _invalid(MATCH_UNFILTERED, unfiltered, "a boolean")
    if FILTER not in arguments:
        return None
    wanted = arguments[FILTER]
    values = wanted if isinstance(wanted, list) else [wanted]
    texts = frozenset(value for value in values if isinstance(value, str))
    if not values or len([value for value in values if isinstance(value, str)]) < len(values):
        raise _invalid(FILTER, wanted, "a string or an array of strings")
    return Filter(texts, unfiltered=unfiltered)


def _invalid(argument: str, value: FieldValue, needed: str) -> ChannelError:
    return precondition_failed(f"invalid {argument} '{shown(value)}': {needed} is needed")
