"""Digests of header values, by which messages are deduplicated."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Final

from ..message.model import FieldValue
from .properties import HEADERS, split
from .tables import decode_value, entries

IDENTITY_BYTES: Final = 16
"""Long enough that two values never have the same digest by accident."""
_NO_TABLE: Final = b"\x00\x00\x00\x00"


def header(properties: bytes, name: str) -> FieldValue:
    """Returns one header of a checked property list; None if it is missing or void."""
    wanted = name.encode()
    for key, raw in entries(split(properties).get(HEADERS, _NO_TABLE)):
        if key == wanted:
            return decode_value(raw)
    return None


def identity(value: FieldValue) -> bytes:
    """Returns a digest, equal for equal values: numbers by value, text by its characters."""
    return blake2b(_shape(value), digest_size=IDENTITY_BYTES).digest()


def _shape(value: FieldValue) -> bytes:
    match value:
        case None:
            return b"v"
        case bool():
            return b"b1" if value else b"b0"
        case int() | float() | Decimal():
            return b"n" + _number(value)
        case str():
            return b"s" + value.encode()
        case bytes() | bytearray():
            return b"s" + bytes(value)
        case datetime():
            return b"t" + str(value.timestamp()).encode()
        case list():
            return b"l" + b"".join(map(_sized, value))
        case dict():
            return b"d" + b"".join(
                _sized(name) + _sized(item) for name, item in sorted(value.items())
            )


def _number(value: float | Decimal) -> bytes:
    if not math.isfinite(value):
        return str(float(value)).encode()
    over, under = value.as_integer_ratio()
    return f"{over}/{under}".encode()


def _sized(value: FieldValue) -> bytes:
    shape = _shape(value)
    return len(shape).to_bytes(4, "big") + shape
