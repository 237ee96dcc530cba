from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from pamqp import base, commands, encode

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


def test_long_text_may_be_bytes() -> None:
    update = commands.Connection.UpdateSecret.index.to_bytes(4, "big")
    read = decode_method(update + b"\x00\x00\x00\x01\xff" + b"\x00")
    assert isinstance(read, commands.Connection.UpdateSecret)
    assert cast(object, read.new_secret) == b"\xff"
