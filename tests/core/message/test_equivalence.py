from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from warrenmq.core.errors import ChannelError
from warrenmq.core.message.equivalence import (
    check_equivalent,
    comparable,
    inequivalent_argument,
    shown,
    type_name,
)
from warrenmq.core.message.model import FieldValue

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (5, 5.0),
        (5, Decimal(5)),
        (float("nan"), float("nan")),
        ("ä", "ä".encode()),
        (b"a", bytearray(b"a")),
        (b"\xff", bytearray(b"\xff")),
        ([1, "a", {"x": 2}], [1.0, b"a", {"x": Decimal(2)}]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (MOMENT, MOMENT),
        (None, None),
    ],
)
def test_equal_values_compare_and_hash_alike(left: FieldValue, right: FieldValue) -> None:
    assert comparable(left) == comparable(right)
    assert hash(comparable(left)) == hash(comparable(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (True, 1),
        (False, 0),
        ([True], [1]),
        ({"a": True}, {"a": 1}),
        ("5", 5),
        ("a", "A"),
        (b"\xff", "\ufffd"),
        (None, ""),
        (None, False),
        ([1, 2], [2, 1]),
        ({"a": 1}, {"a": 1, "b": 2}),
        ([], {}),
        (MOMENT, int(MOMENT.timestamp())),
    ],
)
def test_different_values_do_not(left: FieldValue, right: FieldValue) -> None:
    assert comparable(left) != comparable(right)


@pytest.mark.parametrize(
    ("value", "name", "text"),
    [
        (None, "void", "null"),
        (True, "bool", "true"),
        (5, "signedint", "5"),
        (-(2**31), "signedint", "-2147483648"),
        (2**31, "long", "2147483648"),
        (1.5, "double", "1.5"),
        (Decimal("1.50"), "decimal", "1.50"),
        ("ä", "longstr", "ä"),
        (b"\xff", "longstr", "\ufffd"),
        (bytearray(b"a"), "binary", "a"),
        (MOMENT, "timestamp", "1767225600"),
        ([1, b"a"], "array", '[1, "a"]'),
        ({"a": MOMENT}, "table", '{"a": "1767225600"}'),
    ],
)
def test_types_and_values_as_error_texts_name_them(value: FieldValue, name: str, text: str) -> None:
    assert (type_name(value), shown(value)) == (name, text)


@pytest.mark.parametrize(
    ("received", "current", "text"),
    [
        (False, True, "received 'false' but current is 'true'"),
        (6, 5, "received '6' but current is '5'"),
        ("b", "a", "received 'b' but current is 'a'"),
        (5, None, "received the value '5' of type 'signedint' but current is none"),
        (None, "a", "received none but current is the value 'a' of type 'longstr'"),
    ],
)
def test_inequivalent_texts_are_rabbitmqs(
    received: FieldValue, current: FieldValue, text: str
) -> None:
    error = inequivalent_argument("queue", "n", "v", "x-expires", received, current)
    assert error.code == 406
    assert error.explanation == f"inequivalent arg 'x-expires' for queue 'n' in vhost 'v': {text}"


def test_only_a_difference_is_refused() -> None:
    check_equivalent("queue", "n", "v", "x-expires", 5.0, 5)
    check_equivalent("queue", "n", "v", "x-expires", None, None)
    with pytest.raises(ChannelError, match="received none but current is the value '5'"):
        check_equivalent("queue", "n", "v", "x-expires", None, 5)
