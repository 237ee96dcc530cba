"""Adding a number to headers, against decoding and encoding."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.message.model import Properties, Table
from warrenmq.core.wire.frames import short_string
from warrenmq.core.wire.properties import decode, encode, read_attributes
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
def test_a_number_is_added(properties: Properties, number: int) -> None:
    headers = {**(properties.headers or {}), NAME.decode(): number}
    assert spliced(encode(properties), number) == replace(properties, headers=headers)


@given(TABLES, VALUES, TABLES, NUMBERS)
def test_a_publishers_header_is_replaced(
    before: Table, sent: object, after: Table, number: int
) -> None:
    headers = {**before, NAME.decode(): sent, **after}
    found = spliced(encode(Properties(headers=headers)), number).headers  # type: ignore[arg-type]
    assert found == {**headers, NAME.decode(): number}


def test_other_headers_stay_byte_for_byte() -> None:
    odd = b"".join((b"\x01aB\x07", b"\x01bd", bytes(8), b"\x01aB\x08", b"\x01cs\x00\x05"))
    raw = b"\x20\x00" + len(odd).to_bytes(4, "big") + odd
    own = short_string(NAME.decode()) + b"l" + (7).to_bytes(8, "big")
    size = (len(odd) + len(own)).to_bytes(4, "big")
    assert with_number(raw, NAME, 7) == b"\x20\x00" + size + odd + own


def test_header_name_inside_values_is_unchanged() -> None:
    headers: Table = {"k": NAME.decode(), NAME.decode() + "s": 1, "t": {NAME.decode(): 2}}
    found = spliced(encode(Properties(headers=headers)), 3).headers
    assert found == {**headers, NAME.decode(): 3}


@pytest.mark.parametrize("size", [10, 1_000])
def test_splice(size: int) -> None:
    raw = encode(Properties(content_type="x" * 10, headers={"a": "x" * size}, app_id="app"))
    first = splice(raw, NAME)
    assert splice(raw, NAME) == first
    assert first != splice(raw, b"x-stream-offset")
    before, after = first
    assert decode(before + bytes(7) + b"\x05" + after).headers == {
        "a": "x" * size, NAME.decode(): 5,
    }  # fmt: skip


def test_the_cache_is_bounded() -> None:
    lists = [encode(Properties(message_id=str(number))) for number in range(2_000)]
    first = [splice(raw, NAME) for raw in lists]
    assert sum(splice(raw, NAME) is one for raw, one in zip(lists, first, strict=True)) <= 512
    assert splice(lists[-1], NAME) is splice(lists[-1], NAME)
    large = encode(Properties(message_id="x" * 250, app_id="y" * 250))
    assert splice(large, NAME) is not splice(large, NAME)
