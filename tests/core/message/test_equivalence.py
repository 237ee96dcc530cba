from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from warrenmq.core.message.equivalence import (
    comparable,
    type_name,
    value_text,
)
from warrenmq.core.message.model import FieldValue

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


EQUAL: list[tuple[FieldValue, FieldValue]] = [
    (5, 5.0), (5, Decimal(5)), (float("nan"), float("nan")), ("ä", "ä".encode()),
    (b"a", bytearray(b"a")), (b"\xff", bytearray(b"\xff")), (MOMENT, MOMENT), (None, None),
    ([1, "a", {"x": 2}], [1.0, b"a", {"x": Decimal(2)}]), ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
]  # fmt: skip
DIFFERENT: list[tuple[FieldValue, FieldValue]] = [
    (True, 1), (False, 0), ([True], [1]), ({"a": True}, {"a": 1}), ("5", 5), ("a", "A"),
    (b"\xff", "\ufffd"), (None, ""), (None, False), ([1, 2], [2, 1]), ([], {}),
    ({"a": 1}, {"a": 1, "b": 2}), (MOMENT, int(MOMENT.timestamp())),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_equal_values_have_equal_forms(left: FieldValue, right: FieldValue) -> None:
    assert comparable(left) == comparable(right)
    assert hash(comparable(left)) == hash(comparable(right))


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_different_values_do_not(left: FieldValue, right: FieldValue) -> None:
    assert comparable(left) != comparable(right)


TEXTS: list[tuple[FieldValue, str, str]] = [
    (None, "void", "null"), (True, "bool", "true"), (5, "signedint", "5"),
    (-(2**31), "signedint", "-2147483648"), (2**31, "long", "2147483648"),
    (1.5, "double", "1.5"), (Decimal("1.50"), "decimal", "1.50"), ("ä", "longstr", "ä"),
    (b"\xff", "longstr", "\ufffd"), (bytearray(b"a"), "binary", "a"),
    (MOMENT, "timestamp", "1767225600"), ([1, b"a"], "array", '[1, "a"]'),
    ({"a": MOMENT}, "table", '{"a": "1767225600"}'),
]  # fmt: skip


@pytest.mark.parametrize(("value", "name", "text"), TEXTS)
def test_error_texts_name_types_and_values(value: FieldValue, name: str, text: str) -> None:
    assert (type_name(value), value_text(value)) == (name, text)
