"""The header `x-delay`: valid values, and its negation."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.message.model import FieldValue, Properties, Table
from warrenmq.core.wire import properties as wire
from warrenmq.core.wire.delay import DELAY_MAX_MS, delay_ms_of, negate_delay, read_delay_ms

from .support import TABLES


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        (None, 0), (0, 0), (1, 1), (5_000, 5_000), (DELAY_MAX_MS, DELAY_MAX_MS),
        (-1, 0), (-DELAY_MAX_MS, 0),
        ("5000", 5_000), ("0", 0), ("+7", 7), ("-7", 0), ("007", 7),
        (1500.0, 1_500), (1500.9, 1_500), (0.9, 0), (Decimal("2.5"), 2),
    ],
)  # fmt: skip
def test_valid_delays(value: FieldValue, ms: int) -> None:
    assert read_delay_ms(value) == ms


@pytest.mark.parametrize(
    "value",
    [
        True, "", "abc", "5 ", "5s", "1.5", "--5", "\u0665", "1" * 21, b"\xff", bytearray(b"5"),
        nan, inf, -inf, [5], {"ms": 5}, datetime(2026, 1, 1, tzinfo=UTC),
    ],
)  # fmt: skip
def test_invalid_delay_is_refused(value: FieldValue) -> None:
    with pytest.raises(ValueError, match="as a whole number"):
        read_delay_ms(value)


@pytest.mark.parametrize(
    "value", [DELAY_MAX_MS + 1, -DELAY_MAX_MS - 1, 2**63, str(DELAY_MAX_MS + 1), 1e300]
)
def test_delays_above_the_maximum(value: FieldValue) -> None:
    with pytest.raises(ValueError, match="4294967295 milliseconds at most"):
        read_delay_ms(value)


@given(TABLES, st.integers(1, DELAY_MAX_MS) | st.sampled_from(["12", 7.5, 0, None]))
def test_negate_delay(headers: Table, delay: FieldValue) -> None:
    headers = {"before": 1, **headers, "x-delay": delay, "after": [1, "x"]}
    raw = wire.encode(Properties(headers=headers, expiration="5", message_id="m"))
    ms = delay_ms_of(raw)
    assert ms == read_delay_ms(delay)
    after, seen = negate_delay(raw)
    assert seen == wire.decode(after).headers
    assert wire.decode(after) == wire.decode(
        wire.encode(Properties(headers=headers | {"x-delay": -ms}, expiration="5", message_id="m"))
    )
    wire.read_attributes(after, 0, len(after))
    assert delay_ms_of(after) == 0
    assert after.count(b"x-delay") == 1


def test_an_unsigned_number() -> None:
    for kind, octets in ((b"i", (4_000_000_000).to_bytes(4, "big")), (b"B", b"\xc8")):
        pair = b"\x07x-delay" + kind + octets
        raw = b"\x20\x00" + len(pair).to_bytes(4, "big") + pair
        ms = int.from_bytes(octets, "big")
        assert delay_ms_of(raw) == ms
        assert negate_delay(raw)[1] == {"x-delay": -ms}
