from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import decode

from warrenmq.core.errors import ConnectionFault
from warrenmq.core.message.model import FieldValue, Table, Timestamp
from warrenmq.core.wire.tables import (
    MAX_DEPTH,
    MAX_ENTRIES,
    check,
    decode_checked,
    decode_table,
    decode_value,
    encode_table,
    encode_value,
    entries,
    items,
    join_entries,
    join_items,
    ranges,
)

from .support import TABLES, VALUES, refused

SIZES = (1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 5, 8)


def sized(raw: bytes) -> bytes:
    return len(raw).to_bytes(4, "big") + raw


def table(*pairs: bytes) -> bytes:
    """A table of entries written out."""
    return sized(b"".join(pairs))


def entry(key: bytes, value: bytes) -> bytes:
    return bytes((len(key),)) + key + value


def refusal(raw: bytes) -> str:
    with pytest.raises(ConnectionFault) as caught:
        check(raw, 0, len(raw))
    assert caught.value.code == 502
    return caught.value.explanation


# -- what is right


@given(TABLES, st.binary(max_size=5), st.binary(max_size=5))
def test_round_trip(made: Table, before: bytes, behind: bytes) -> None:
    raw = encode_table(made)
    data = before + raw + behind
    assert check(data, len(before), len(data)) == len(before) + len(raw)
    assert decode_table(data, len(before), len(data)) == (made, len(before) + len(raw))
    assert decode_checked(raw) == made


@given(TABLES)
def test_pamqp_reads_what_is_encoded(made: Table) -> None:
    assert decode.field_table(encode_table(made)) == (len(encode_table(made)), made)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"t\x00", False),
        (b"t\x02", True),
        (b"b\xff", -1),
        (b"B\xff", 255),
        (b"s\xff\xfe", -2),
        (b"u\xff\xfe", 65534),
        (b"I\xff\xff\xff\xff", -1),
        (b"i\xff\xff\xff\xff", 2**32 - 1),
        (b"l" + b"\xff" * 8, -1),
        (b"L" + b"\xff" * 8, 2**64 - 1),
        (b"f\x3f\xc0\x00\x00", 1.5),
        (b"d" + struct.pack(">d", 0.1), 0.1),
        (b"D\x02\x00\x00\x00\x7b", Decimal("1.23")),
        (b"D\x00\xff\xff\xff\xff", Decimal(-1)),
        (b"D\xff\x00\x00\x00\x01", Decimal("1E-255")),
        (b"S\x00\x00\x00\x02\xc3\xbc", "\u00fc"),
        (b"S\x00\x00\x00\x02\xff\xff", b"\xff\xff"),
        (b"x\x00\x00\x00\x02ab", bytearray(b"ab")),
        (b"T" + (86_400).to_bytes(8, "big"), datetime(1970, 1, 2, tzinfo=UTC)),
        (b"T" + (2**32).to_bytes(8, "big"), datetime(2106, 2, 7, 6, 28, 16, tzinfo=UTC)),
        (b"T" + b"\xff" * 8, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (b"T" + struct.pack(">q", -62_135_596_800), datetime(1, 1, 1, tzinfo=UTC)),
        (b"T" + struct.pack(">q", -62_135_596_801), Timestamp(-62_135_596_801)),
        (b"T" + (1_700_000_000_000).to_bytes(8, "big"), Timestamp(1_700_000_000_000)),
        (b"T" + (2**63 - 1).to_bytes(8, "big"), Timestamp(2**63 - 1)),
        (b"T\x80" + bytes(7), Timestamp(-(2**63))),
        (b"V", None),
        (b"A\x00\x00\x00\x03Vt\x01", [None, True]),
        (b"F\x00\x00\x00\x03\x01aV", {"a": None}),
    ],
)
def test_values_of_every_type(raw: bytes, value: FieldValue) -> None:
    data = table(entry(b"k", raw))
    assert decode_table(data, 0, len(data)) == ({"k": value}, len(data))
    assert isinstance(decode_value(raw), type(value))
    if raw[:1] not in b"tfS":  # of which several forms mean the same
        assert encode_value(decode_value(raw)) == raw


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (1, b"I\x00\x00\x00\x01"),
        (-(2**31), b"I\x80\x00\x00\x00"),
        (2**31, b"l\x00\x00\x00\x00\x80\x00\x00\x00"),
        (0.1, b"d" + struct.pack(">d", 0.1)),
        (1e300, b"d" + struct.pack(">d", 1e300)),
        (datetime(1970, 1, 1, 0, 1), b"T" + (60).to_bytes(8, "big")),
        (
            datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
            b"T" + bytes(8),
        ),
        (Decimal("1E+3"), b"D\x00\x00\x00\x03\xe8"),
        (Decimal("0.10"), b"D\x02\x00\x00\x00\x0a"),
        (Decimal("-0.1"), b"D\x01\xff\xff\xff\xff"),
    ],
)
def test_values_are_encoded_as_every_client_reads_them(value: FieldValue, raw: bytes) -> None:
    assert encode_value(value) == raw


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(2**63) - 1,
        Decimal(2**31),
        Decimal(-(2**31) - 1),
        Decimal("2147483647.1"),
        Decimal("1E-256"),
        Decimal("1E+1000000"),
        Decimal("NaN"),
        Decimal("Infinity"),
        "\ud800",
        {"k" * 256: None},
        {"outer": [{"\u00fc" * 128: None}]},
    ],
)
def test_values_that_amqp_has_no_type_for(value: FieldValue) -> None:
    with pytest.raises(ValueError, match="table|surrogates"):
        encode_table({"k": value})


@given(TABLES)
def test_entries_and_join_entries(made: Table) -> None:
    raw = encode_table(made)
    pairs = dict(entries(raw))
    assert {key.decode(): decode_value(value) for key, value in pairs.items()} == made
    assert join_entries(pairs) == raw


@given(st.lists(VALUES, max_size=5))
def test_items_and_join_items(values: list[FieldValue]) -> None:
    raw = encode_value(values)[1:]
    assert [decode_value(item) for item in items(raw)] == values
    assert join_items(items(raw)) == raw


@given(TABLES, st.randoms())
def test_values_do_not_matter_for_the_check(made: Table, chance: st.DataObject) -> None:
    raw = bytearray(encode_table(made))
    for start, end in ranges(bytes(raw)):
        raw[start:end] = bytes(chance.randrange(256) for _ in range(start, end))  # type: ignore[attr-defined]
    assert check(bytes(raw), 0, len(raw)) == len(raw)
    assert decode_checked(bytes(raw)).keys() == made.keys()


# -- what is wrong


@given(TABLES, st.data())
def test_a_table_with_one_wrong_octet_is_refused_or_decoded(
    made: Table, data: st.DataObject
) -> None:
    raw = bytearray(encode_table(made))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    code = refused(lambda: decode_table(bytes(raw), 0, len(raw)))
    assert code in (None, 502)


@given(TABLES, st.data())
def test_a_table_cut_short_is_refused(made: Table, data: st.DataObject) -> None:
    raw = encode_table(made)
    end = data.draw(st.integers(0, len(raw) - 1))
    assert refused(lambda: check(raw, 0, end)) == 502
    assert refused(lambda: check(raw[:end], 0, end)) == 502


def nested(levels: int, kind: bytes) -> bytes:
    """A table with that many levels, its own included, of tables or of arrays."""
    raw = sized(b"")
    for _ in range(levels - 2):
        raw = sized(kind + raw) if kind == b"A" else table(entry(b"k", b"F" + raw))
    return table(entry(b"k", kind + raw))


@pytest.mark.parametrize("kind", [b"F", b"A"])
def test_depth_is_bounded(kind: bytes) -> None:
    deep = nested(MAX_DEPTH, kind)
    assert decode_table(deep, 0, len(deep))[1] == len(deep)
    assert refusal(nested(MAX_DEPTH + 1, kind)) == "table is nested more than 128 levels deep"
    assert refusal(nested(580, kind)) == "table is nested more than 128 levels deep"


def test_entries_are_bounded_over_all_levels() -> None:
    half = MAX_ENTRIES // 2
    full = table(entry(b"k", b"A" + sized(b"V" * half)), *(keys(MAX_ENTRIES - half - 1)))
    assert check(full, 0, len(full)) == len(full)
    more = table(entry(b"k", b"A" + sized(b"V" * (half + 1))), *(keys(MAX_ENTRIES - half - 1)))
    assert refusal(more) == "table has more than 8192 entries, all levels together"


def keys(count: int) -> list[bytes]:
    return [entry(str(number).encode(), b"V") for number in range(count)]


def test_unknown_types() -> None:
    for kind in set(range(256)) - set(b"tbBsuIilLfdDTVSxFA"):
        raw = table(entry(b"k", bytes((kind,))))
        assert refusal(raw) == f"table has a value of unknown type {kind}"


VALUES_OF_ALL_TYPES = [
    *(kind.encode() + bytes(size) for kind, size in zip("tbBsuIilLfdDT", SIZES, strict=True)),
    b"S" + sized(b"a"),
    b"x" + sized(b"a"),
    b"F" + table(entry(b"k", b"V")),
    b"A" + sized(b"V"),
]


@pytest.mark.parametrize("value", VALUES_OF_ALL_TYPES)
def test_values_past_the_end_of_their_table(value: bytes) -> None:
    assert check(table(entry(b"k", value)), 0, 4 + 2 + len(value))
    for missing in range(1, len(value)):
        raw = (2 + len(value) - missing).to_bytes(4, "big") + entry(b"k", value) + bytes(8)
        assert refused(lambda raw=raw: check(raw, 0, len(raw))) == 502, raw  # type: ignore[misc]


def test_keys() -> None:
    assert refusal(table(entry(b"k", b"V"), entry(b"k", b"V"))) == "table has the key b'k' twice"
    inner = b"F" + table(entry(b"k", b"V"), entry(b"k", b"V"))
    assert "twice" in refusal(table(entry(b"k", inner)))
    assert refusal(table(entry(b"\xff", b"V"))) == "table key b'\\xff' is not UTF-8"
    same_below = table(entry(b"k", b"F" + table(entry(b"k", b"V"))), entry(b"l", b"V"))
    assert check(same_below, 0, len(same_below)) == len(same_below)
    no_name = table(entry(b"", b"V"))
    assert decode_table(no_name, 0, len(no_name))[0] == {"": None}
