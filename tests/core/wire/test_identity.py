"""Digests of header values: equal for equal values only."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from itertools import combinations
from math import inf, nan

import pytest
from hypothesis import given

from warrenmq.core.message.equivalence import comparable
from warrenmq.core.message.model import FieldValue, Properties
from warrenmq.core.wire import properties as wire
from warrenmq.core.wire.identity import IDENTITY_BYTES, header, identity

from .support import TABLES

DIFFERENT: list[FieldValue] = [
    "", "a", "ab", "1", 1, 0, -1, 1.5, 2**63, True, False, inf, -inf, [], ["a"], ["a", "b"], ["ab"],
    [["a"], "b"], {}, {"a": 1}, {"a": "1"}, {"b": 1}, {"a": {"a": 1}}, b"\xff",
    datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC), None,
]  # fmt: skip


def test_different_values_differ() -> None:
    for one, other in combinations(DIFFERENT, 2):
        assert identity(one) != identity(other), (one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (5, 5.0), (5, Decimal(5)), (Decimal("0.5"), 0.5), (-0.0, 0), ("a", b"a"),
        ("a", bytearray(b"a")), ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}), (nan, nan),
    ],
)  # fmt: skip
def test_equal_values_are_one(one: FieldValue, other: FieldValue) -> None:
    assert identity(one) == identity(other)
    assert len(identity(one)) == IDENTITY_BYTES


@given(TABLES, TABLES)
def test_identity_agrees_with_comparable(one: FieldValue, other: FieldValue) -> None:
    assert (identity(one) == identity(other)) == (comparable(one) == comparable(other))


def test_header() -> None:
    raw = wire.encode(Properties(headers={"a": 1, "id": "x", "void": None}, app_id="id"))
    assert [header(raw, name) for name in ("id", "a", "void", "none")] == ["x", 1, None, None]
    assert header(wire.encode(Properties(app_id="id")), "id") is None
