from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from tests.core.route.support import FakeQueue, exchange
from warrenmq.core.message.model import FieldValue
from warrenmq.core.route.hashing import (
    HASH_VALUES,
    hash_of,
    hash_of_destination,
    hashed_form,
    identity_of,
)


def test_hashes_are_the_same_in_every_process() -> None:
    """Written down once: where keys go must not change with a release either."""
    assert [hash_of(key) for key in (b"", b"key-1", b"key-2")] == [
        0xB4B2797457A0A6E4, 0xDF47561237367940, 0x4ABBAED39A2E7880,
    ]  # fmt: skip
    assert hash_of_destination(FakeQueue("q")).hex() == "3480b4d561db0334"


def test_similar_keys_differ_in_every_bit() -> None:
    counts = [0] * 64
    for number in range(1000):
        mixed = hash_of(b"key-%d" % number)
        assert 0 <= mixed < HASH_VALUES
        counts = [count + (mixed >> bit & 1) for bit, count in enumerate(counts)]
    assert all(400 < count < 600 for count in counts)


def test_a_queue_and_an_exchange_of_one_name_are_two() -> None:
    queue, onward = FakeQueue("n"), exchange("fanout", "n")
    assert (identity_of(queue), identity_of(onward)) == (("queue", "n"), ("exchange", "n"))
    assert hash_of_destination(queue) != hash_of_destination(onward)
    assert hash_of_destination(queue) == hash_of_destination(FakeQueue("n"))


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("text", b"text"),
        ("ä", b"\xc3\xa4"),
        (b"\xff", b"\xff"),
        (bytearray(b"a"), b"a"),
        (True, b"true"),
        (False, b"false"),
        (10, b"10"),
        (10.0, b"10"),
        (Decimal("10.00"), b"10"),
        (-(2**63), b"-9223372036854775808"),
        (0.5, b"0.5"),
        (Decimal("0.5"), b"0.5"),
        (float("inf"), b"inf"),
        (float("nan"), b"nan"),
        (Decimal("NaN"), b"nan"),
        (datetime(2026, 11, 21, tzinfo=UTC), b"1795219200"),
        (None, b""),
        ([], b""),
        (["a", 1, "a1"], b"1:a\x001:1\x002:a1"),
        ({"b": 1, "a": [2.0]}, b"1:a\x003:1:2\x001:b\x001:1"),
    ],
)
def test_hashed_form(value: FieldValue, form: bytes) -> None:
    assert hashed_form(value) == form


def test_a_tables_order_does_not_count() -> None:
    assert hashed_form({"a": 1, "b": 2}) == hashed_form({"b": 2, "a": 1})
    assert hashed_form(["a", "b"]) != hashed_form(["b", "a"])
