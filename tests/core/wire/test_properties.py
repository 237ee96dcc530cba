from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import frame, header

from warrenmq.core.errors import ConnectionFault
from warrenmq.core.message.model import PROPERTY_NAMES, Properties, Table
from warrenmq.core.wire import properties as wire
from warrenmq.core.wire.frames import header_frame
from warrenmq.core.wire.properties import (
    PERSISTENT,
    PLAIN,
    RANKED,
    TIMED,
    MessageAttributes,
    read_attributes,
)

from .support import LISTS, TABLES, fields, refused


def expected(properties: Properties) -> tuple[object, ...]:
    """By the definition, from the decoded properties."""
    expiration = properties.expiration
    inspected = (
        bool({"CC", "BCC"} & (properties.headers or {}).keys())
        or properties.reply_to == "amq.rabbitmq.reply-to"
        or properties.user_id is not None
        or (
            expiration is not None
            and not (expiration.isascii() and expiration.isdigit() and len(expiration) < 12)
        )
    )
    attributes = MessageAttributes(
        persistent=properties.delivery_mode == 2,
        priority=properties.priority or 0,
        # Read octet by octet; what is not ASCII is inspected and then refused.
        expiration=None if expiration is None else expiration.encode().decode("latin-1"),
        inspected=inspected,
    )
    return fields(attributes)


def explanation(call: Callable[[], object]) -> str:
    with pytest.raises(ConnectionFault) as caught:
        call()
    assert caught.value.code == 502
    return caught.value.explanation


# -- what is right


@given(LISTS, st.binary(max_size=5), st.binary(max_size=5))
def test_attributes_agree_with_decoding(made: Properties, before: bytes, behind: bytes) -> None:
    raw = wire.encode(made)
    data = before + raw + behind
    assert wire.decode(raw) == made
    attributes = read_attributes(data, len(before), len(before) + len(raw))
    assert fields(attributes) == expected(made)


@given(LISTS)
def test_pamqp_reads_what_is_encoded(made: Properties) -> None:
    # Its times end in the calendar, it knows no cluster-id; tables are compared in test_tables.
    made.cluster_id = ""
    made.timestamp = None if made.timestamp is None else made.timestamp & 0x7FFFFFFF
    made.headers = None if made.headers is None else {}
    read = frame.unmarshal(header_frame(1, 0, wire.encode(made)))[2]
    assert isinstance(read, header.ContentHeader)
    for name in PROPERTY_NAMES:
        value = getattr(read.properties, "message_type" if name == "type" else name)
        value = int(value.timestamp()) if isinstance(value, datetime) else value
        assert value == getattr(made, name), name


@given(LISTS)
def test_split_and_join(made: Properties) -> None:
    raw = wire.encode(made)
    parts = wire.split(raw)
    assert wire.join(parts) == raw
    assert wire.join(dict(reversed(parts.items()))) == raw
    assert len(parts) == sum(getattr(made, name) is not None for name in PROPERTY_NAMES)


@pytest.mark.parametrize(
    ("headers", "inspected"),
    [
        ({"CC": ["a"]}, True),
        ({"a": 1, "BCC": ["a"]}, True),
        ({"CC": None}, True),
        ({"note": "CC: everyone"}, False),
        ({"SUCCESS": True}, False),
        ({"below": {"CC": ["a"]}}, False),
        ({}, False),
    ],
)
def test_copies(headers: Table, inspected: bool) -> None:
    raw = wire.encode(Properties(headers=headers))
    assert read_attributes(raw, 0, len(raw)).inspected is inspected


def test_attributes_are_interned() -> None:
    def attributes(**properties: object) -> MessageAttributes:
        raw = wire.encode(Properties(**properties))  # type: ignore[arg-type]
        return read_attributes(raw, 0, len(raw))

    assert attributes() is PLAIN
    assert attributes(content_type="a", message_id="b") is PLAIN
    assert attributes(delivery_mode=1, priority=0) is PLAIN
    assert attributes(delivery_mode=2) is PERSISTENT
    assert attributes(priority=7) is attributes(priority=7, app_id="a")
    assert attributes(expiration="5000") is attributes(expiration="5000")


@pytest.mark.parametrize(
    ("priority", "expiration", "special"),
    [(0, None, 0), (1, None, RANKED), (0, "5", TIMED), (9, "5", RANKED | TIMED)],
)
def test_special(priority: int, expiration: str | None, special: int) -> None:
    assert MessageAttributes(priority=priority, expiration=expiration).special == special


def test_interned_attributes_are_bounded() -> None:
    many = [wire.intern_attributes(False, 0, str(number), False) for number in range(5000)]
    kept = [wire.intern_attributes(False, 0, str(number), False) for number in range(5000)]
    assert [*map(fields, many)] == [*map(fields, kept)]
    assert sum(first is second for first, second in zip(many, kept, strict=True)) <= 4096


@given(LISTS, TABLES)
def test_without_header(made: Properties, headers: Table) -> None:
    made.headers = {**headers, "BCC": ["a"], "other": 2**40}
    less = wire.without_header(wire.encode(made), b"BCC")
    del made.headers["BCC"]
    assert less == wire.encode(made)
    assert wire.without_header(less, b"BCC") == less


# -- what is wrong


@given(LISTS, st.data())
def test_a_list_with_one_wrong_octet_is_refused_or_decoded(
    made: Properties, data: st.DataObject
) -> None:
    raw = bytearray(wire.encode(made))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    code = refused(lambda: read_attributes(bytes(raw), 0, len(raw)))
    assert code in (None, 502)
    if code is None:
        attributes = read_attributes(bytes(raw), 0, len(raw))
        assert fields(attributes) == expected(wire.decode(bytes(raw)))


@given(LISTS, st.data())
def test_a_list_that_is_cut_or_too_long_is_refused(made: Properties, data: st.DataObject) -> None:
    raw = wire.encode(made)
    end = data.draw(st.integers(0, len(raw) - 1))
    assert refused(lambda: read_attributes(raw, 0, end)) == 502
    assert refused(lambda: read_attributes(raw[:end], 0, end)) == 502
    assert refused(lambda: read_attributes(raw + b"\x00", 0, len(raw) + 1)) == 502


def test_flags_that_class_basic_does_not_have() -> None:
    assert "does not have" in explanation(lambda: read_attributes(b"\x00\x02", 0, 2))
    assert "does not have" in explanation(lambda: read_attributes(b"\x80\x01\x00", 0, 3))
    assert "2 at least" in explanation(lambda: read_attributes(b"\x00", 0, 1))


@pytest.mark.parametrize("flag", [0x8000, 0x4000, 0x400, 0x200, 0x100, 0x80, 0x20, 0x10, 8, 4])
def test_text_is_utf8(flag: int) -> None:
    flags = flag.to_bytes(2, "big")
    for text, code in ((b"\xc3\xbc", None), (b"\xff\xfe", 502), (b"\xc3", 502)):
        raw = flags + bytes((len(text),)) + text
        assert refused(lambda raw=raw: read_attributes(raw, 0, len(raw))) == code  # type: ignore[misc]


def test_octets_of_numbers_and_tables_need_not_be_utf8() -> None:
    made = Properties(headers={"k": b"\xff"}, priority=255, timestamp=2**64 - 1, delivery_mode=200)
    raw = wire.encode(made)
    assert fields(read_attributes(raw, 0, len(raw))) == fields(MessageAttributes(priority=255))
    assert wire.decode(raw) == made


@pytest.mark.parametrize(
    "made",
    [
        Properties(message_id="x" * 256),
        Properties(content_type="\u00fc" * 128),
        Properties(priority=256),
        Properties(delivery_mode=-1),
        Properties(timestamp=2**64),
        Properties(headers={"k": 2**64}),
    ],
)
def test_values_out_of_range_are_not_encoded(made: Properties) -> None:
    with pytest.raises(ValueError, match="limit|64 bits"):
        wire.encode(made)
