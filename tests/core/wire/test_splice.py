"""A number among the headers: the same as decoding, adding it and encoding again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.message.model import Properties, Table
from warrenmq.core.wire import splice as module
from warrenmq.core.wire.frames import short_string
from warrenmq.core.wire.properties import HEADERS, PERSISTENT, decode, encode, read_attributes
from warrenmq.core.wire.splice import splice, with_number

from .support import LISTS, TABLES, VALUES

NAME = b"x-delivery-count"
NUMBERS = st.integers(0, 2**63 - 1)


def spliced(raw: bytes, number: int) -> Properties:
    """Read again; the list must fill its frame exactly."""
    made = with_number(raw, NAME, number)
    read_attributes(made, 0, len(made))
    return decode(made)


@given(LISTS, NUMBERS)
def test_only_the_number_is_new(properties: Properties, number: int) -> None:
    headers = {**(properties.headers or {}), NAME.decode(): number}
    assert spliced(encode(properties), number) == replace(properties, headers=headers)


@given(TABLES, VALUES, TABLES, NUMBERS)
def test_one_that_a_publisher_sent_is_left_out(
    before: Table, sent: object, after: Table, number: int
) -> None:
    headers = {**before, NAME.decode(): sent, **after}
    found = spliced(encode(Properties(headers=headers)), number).headers  # type: ignore[arg-type]
    assert found == {**headers, NAME.decode(): number}


def test_other_headers_stay_byte_for_byte() -> None:
    """In types that Warren would not write itself, and twice if they were sent twice."""
    odd = b"".join((b"\x01aB\x07", b"\x01bd", bytes(8), b"\x01aB\x08", b"\x01cs\x00\x05"))
    raw = b"\x20\x00" + len(odd).to_bytes(4, "big") + odd
    own = short_string(NAME.decode()) + b"l" + (7).to_bytes(8, "big")
    size = (len(odd) + len(own)).to_bytes(4, "big")
    assert with_number(raw, NAME, 7) == b"\x20\x00" + size + odd + own


def test_its_name_elsewhere_is_no_header_of_that_name() -> None:
    headers: Table = {"k": NAME.decode(), NAME.decode() + "s": 1, "t": {NAME.decode(): 2}}
    found = spliced(encode(Properties(headers=headers)), 3).headers
    assert found == {**headers, NAME.decode(): 3}


def test_what_the_broker_knows_of_a_message_stays() -> None:
    raw = encode(Properties(delivery_mode=2, message_id="m"))
    made = with_number(raw, NAME, 1)
    assert read_attributes(made, 0, len(made)) is PERSISTENT
    assert made[:2] == (int.from_bytes(raw[:2], "big") | HEADERS).to_bytes(2, "big")


@pytest.mark.parametrize("size", [10, 1_000])
def test_pieces_are_those_of_one_list(size: int) -> None:
    """Also when they are remembered, and under another name."""
    raw = encode(Properties(content_type="x" * 10, headers={"a": "x" * size}, app_id="app"))
    first = splice(raw, NAME)
    assert splice(raw, NAME) == first
    assert first != splice(raw, b"x-stream-offset")
    before, after = first
    assert decode(before + bytes(7) + b"\x05" + after).headers == {
        "a": "x" * size, NAME.decode(): 5,
    }  # fmt: skip


def test_what_is_remembered_has_a_bound() -> None:
    for number in range(2 * module._KEPT_MAX):
        splice(encode(Properties(message_id=str(number))), NAME)
    assert len(module._kept) <= module._KEPT_MAX
    module._kept.clear()
    splice(encode(Properties(message_id="x" * 250, app_id="y" * 250)), NAME)
    assert not module._kept
