"""Random tables and property lists, and the outcome of a call."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import TypeVar

from hypothesis import strategies as st

from warrenmq.core.errors import ProtocolError
from warrenmq.core.message.model import FieldValue, Properties, Table
from warrenmq.core.wire.properties import DIRECT_REPLY_TO, MessageAttributes

SHORT = st.text(max_size=12)
_FIRST, _LAST = datetime(1970, 1, 1), datetime(2106, 1, 1)  # pamqp reads no others
TIMES = st.datetimes(_FIRST, _LAST, timezones=st.just(UTC)).map(
    lambda at: at.replace(microsecond=0)
)
DECIMALS = st.builds(
    lambda unscaled, scale: Decimal(unscaled).scaleb(-scale),
    st.integers(-(2**31) + 1, 2**31 - 1),
    st.integers(0, 20),
)
PLAIN_VALUES: st.SearchStrategy[FieldValue] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    SHORT,
    st.just(b"\xff\xfe"),
    st.binary(max_size=8).map(bytearray),
    DECIMALS,
    TIMES,
)
KEYS = st.one_of(st.sampled_from(["CC", "BCC", "x-death", "CCC", "k"]), st.text(max_size=8))


def _containers(values: st.SearchStrategy[FieldValue]) -> st.SearchStrategy[FieldValue]:
    lists: st.SearchStrategy[FieldValue] = st.lists(values, max_size=3).map(list)
    tables: st.SearchStrategy[FieldValue] = st.dictionaries(KEYS, values, max_size=3).map(dict)
    return lists | tables


VALUES = st.recursive(PLAIN_VALUES, _containers, max_leaves=6)
TABLES: st.SearchStrategy[Table] = st.dictionaries(KEYS, VALUES, max_size=4)

EXPIRATIONS = st.sampled_from(
    ["0", "60000", "99999999999", "100000000000", "9" * 20, "", "-1", "1.5", "\u00b2", "\u0661"]
)
REPLY_TOS = st.one_of(SHORT, st.just(DIRECT_REPLY_TO.decode()), st.just("x" * len(DIRECT_REPLY_TO)))


T = TypeVar("T")


def _perhaps(values: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.none() | values


LISTS: st.SearchStrategy[Properties] = st.builds(
    Properties,
    content_type=_perhaps(SHORT),
    content_encoding=_perhaps(SHORT),
    headers=_perhaps(TABLES),
    delivery_mode=_perhaps(st.integers(0, 3)),
    priority=_perhaps(st.integers(0, 255)),
    correlation_id=_perhaps(SHORT),
    reply_to=_perhaps(REPLY_TOS),
    expiration=_perhaps(EXPIRATIONS),
    message_id=_perhaps(SHORT),
    timestamp=_perhaps(st.integers(0, 2**64 - 1)),
    type=_perhaps(SHORT),
    user_id=_perhaps(SHORT),
    app_id=_perhaps(SHORT),
    cluster_id=_perhaps(SHORT),
)


def fields(attributes: MessageAttributes) -> tuple[object, ...]:
    """Returns all fields, because attributes compare by identity."""
    return tuple(getattr(attributes, name) for name in MessageAttributes.__slots__)


def outcome(call: Callable[[], MessageAttributes]) -> object:
    """Returns the result of a call, field by field, or the code and text of its error."""
    try:
        return fields(call())
    except ProtocolError as error:
        return error.code, error.explanation


def refused(call: Callable[[], object]) -> int | None:
    """Returns the code of the error that a call raises; None without one."""
    try:
        call()
    except ProtocolError as error:
        return error.code
    return None
