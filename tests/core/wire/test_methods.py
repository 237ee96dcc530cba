from __future__ import annotations

from datetime import datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import base, commands, encode

from warrenmq.core.errors import ConnectionFault
from warrenmq.core.wire.methods import decode_method
from warrenmq.core.wire.tables import encode_table

from .support import TABLES, refused

METHODS = [cast(type[base.Frame], cls) for cls in commands.INDEX_MAPPING.values()]
NUMBERS = {"octet": 8, "short": 16, "long": 32, "longlong": 63}


def values(kind: str) -> st.SearchStrategy[Any]:
    if kind in NUMBERS:
        return st.integers(0, 2 ** NUMBERS[kind] - 1)
    if kind == "bit":
        return st.booleans()
    if kind == "table":
        return TABLES
    return st.text(max_size=40)


@st.composite
def payloads(draw: st.DrawFn) -> tuple[type[base.Frame], dict[str, Any], bytes]:
    """A method, its fields, and its payload; written out by hand, for pamqp refuses odd names."""
    cls = draw(st.sampled_from(METHODS))
    fields = {name: draw(values(cls.amqp_type(name))) for name in cls.attributes()}
    raw = cls.index.to_bytes(4, "big")
    bits: list[bool] = []
    for name, value in [*fields.items(), ("", None)]:
        kind = cls.amqp_type(name) if name else ""
        if kind == "bit":
            bits.append(value)
            continue
        raw += sum(bit << at for at, bit in enumerate(bits)).to_bytes(bool(bits), "little")
        bits = []
        if kind == "table":
            raw += encode_table(value)
        elif kind:
            raw += encode.by_type(value, kind)
    return cls, fields, raw


@given(payloads())
def test_fields_of_every_method(made: tuple[type[base.Frame], dict[str, Any], bytes]) -> None:
    cls, fields, raw = made
    method = decode_method(raw)
    assert type(method) is cls
    assert dict(method) == fields


@given(payloads(), st.data())
def test_a_method_that_is_cut_or_too_long_is_refused(
    made: tuple[type[base.Frame], dict[str, Any], bytes], data: st.DataObject
) -> None:
    raw = made[2]
    assert refused(lambda: decode_method(raw + b"\x00")) == 502
    cut = raw[: data.draw(st.integers(0, len(raw) - 1))]
    assert refused(lambda: decode_method(cut)) == 502


@given(payloads(), st.data())
def test_a_method_with_wrong_octets_is_refused_or_decoded(
    made: tuple[type[base.Frame], dict[str, Any], bytes], data: st.DataObject
) -> None:
    raw = bytearray(made[2])
    for at in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=3)):
        raw[at] = data.draw(st.integers(0, 255))
    assert refused(lambda: decode_method(bytes(raw))) in (None, 502, 540)


def test_bits_share_an_octet() -> None:
    made = commands.Queue.Declare(queue="q", durable=True, auto_delete=True, nowait=True)
    read = decode_method(made.index.to_bytes(4, "big") + made.marshal())
    assert isinstance(read, commands.Queue.Declare)
    bits = (read.passive, read.durable, read.exclusive, read.auto_delete, read.nowait)
    assert bits == (False, True, False, True, True)


@pytest.mark.parametrize("index", [0, 0x003C0001, 0x00FF000A, 0xFFFFFFFF, 0x000A00FF])
def test_unknown_methods(index: int) -> None:
    with pytest.raises(ConnectionFault, match=f"{index >> 16}/{index & 0xFFFF}") as caught:
        decode_method(index.to_bytes(4, "big"))
    assert caught.value.code == 540


def test_a_payload_that_holds_no_method() -> None:
    with pytest.raises(ConnectionFault, match="4 at least") as caught:
        decode_method(b"\x00\x3c\x00")
    assert caught.value.code == 502


def test_text_is_utf8_and_long_text_may_be_bytes() -> None:
    cancel = commands.Basic.Cancel.index.to_bytes(4, "big")
    with pytest.raises(ConnectionFault, match="UTF-8") as caught:
        decode_method(cancel + b"\x01\xff\x00")
    assert caught.value.code == 502
    update = commands.Connection.UpdateSecret.index.to_bytes(4, "big")
    read = decode_method(update + b"\x00\x00\x00\x01\xff" + b"\x00")
    assert isinstance(read, commands.Connection.UpdateSecret)
    assert cast(object, read.new_secret) == b"\xff"


def test_times_in_tables_are_dates() -> None:
    raw = commands.Queue.Declare.index.to_bytes(4, "big") + b"\x00\x00\x01q\x00"
    raw += b"\x00\x00\x00\x0b\x01kT" + (60).to_bytes(8, "big")
    read = decode_method(raw)
    assert isinstance(read, commands.Queue.Declare)
    assert isinstance((read.arguments or {})["k"], datetime)
