"""Arguments in JSON: every type comes back, and what fits no type is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given

from tests.core.wire.support import TABLES
from warrenmq.app.definitions.values import table_from_json, table_to_json
from warrenmq.core.definitions.fields import arguments
from warrenmq.core.message.model import FieldValue, Table, Timestamp


def through_a_file(table: Table) -> Table:
    return table_from_json(json.loads(json.dumps(table_to_json(table), allow_nan=False)))


@given(TABLES)
@example({"$table": {"$decimal": "1"}})
@example({"k": {"$table": {"$bytes": [{"$": 1}]}}})
@example({"k": [float("inf"), float("-inf"), -0.0, 1e300, 2**64 - 1, 2**53 + 1]})
@example(
    {
        "k": Decimal("-21474836.48"),
        "l": Decimal("0E-5"),
        "m": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    }
)
def test_arguments_come_back_byte_for_byte(table: Table) -> None:
    assert arguments(through_a_file(table)) == arguments(table)


def test_no_number() -> None:
    found = through_a_file({"k": float("nan")})["k"]
    assert isinstance(found, float)
    assert found != found


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, None),
        (True, True),
        (5, 5),
        (5.0, 5.0),
        ("\u00fc", "\u00fc"),
        ([1, {"a": 2}], [1, {"a": 2}]),
        (float("inf"), {"$double": "inf"}),
        (Decimal("1.20"), {"$decimal": "1.20"}),
        (datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), {"$timestamp": 1_700_000_000}),
        (datetime(1969, 12, 31, tzinfo=UTC), {"$timestamp": -86_400}),
        (Timestamp(1_700_000_000_000), {"$timestamp": 1_700_000_000_000}),
        (b"\xff", {"$bytes": "/w=="}),
        (bytearray(b"\xff"), {"$binary": "/w=="}),
        ({"$key": 1}, {"$table": {"$key": 1}}),
        ({"$key": 1, "b": 2}, {"$key": 1, "b": 2}),
    ],
)
def test_values_are_written_as_documented(value: FieldValue, written: Any) -> None:
    assert table_to_json({"k": value}) == {"k": written}
    found = table_from_json({"k": written})["k"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ({"$mystery": 1}, r"unknown tag '\$mystery'"), ({"$double": "1.0"}, r"\$double needs"),
        ({"$double": ["nan"]}, r"\$double needs"), ({"$decimal": 1.2}, r"\$decimal needs"),
        ({"$decimal": "much"}, r"\$decimal needs"), ({"$decimal": "NaN"}, "table value NaN"),
        ({"$timestamp": "now"}, r"\$timestamp needs"), ({"$timestamp": True}, r"\$timestamp needs"),
        ({"$timestamp": 2**63}, "out of range"),
        ({"$bytes": "/w="}, "base64"), ({"$bytes": 1}, "base64"),
        ({"$binary": "\u00fc"}, "base64|ASCII"), ({"$table": [1]}, r"\$table needs"),
        (2**64, "exceeds 64 bits"), (float("inf"), "too large for a double"),
        ({"x" * 256: 1}, "limit 255"), ("\ud800", "surrogates"),
        ([1] * 8_193, "more than 8192 entries"),
    ],
)  # fmt: skip
def test_invalid_tags_are_refused(written: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        table_from_json({"k": written})


def test_depth_is_bounded_as_for_clients() -> None:
    deep: Any = 1
    for _ in range(130):
        deep = [deep]
    with pytest.raises(ValueError, match="nested more than 128 levels"):
        table_from_json({"k": deep})
