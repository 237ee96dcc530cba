"""Hashes that are the same in every process, whatever the order of binding."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Final

from ..message.model import FieldValue
from .exchange import Exchange
from .route import Destination

HASH_BYTES: Final = 8
HASH_VALUES: Final = 1 << 8 * HASH_BYTES


def hash_of(value: bytes) -> int:
    """Returns a 64-bit hash, well distributed for similar values (`key-1`, `key-2`)."""
    return int.from_bytes(blake2b(value, digest_size=HASH_BYTES).digest(), "little")


def identity_of(destination: Destination) -> tuple[str, str]:
    """Returns what identifies a destination over restarts: its kind and name."""
    return ("exchange" if isinstance(destination, Exchange) else "queue", destination.name)


def hash_of_destination(destination: Destination) -> bytes:
    """Returns a hash of `HASH_BYTES`, independent of the hash of a key with the same text."""
    kind, name = identity_of(destination)
    return blake2b(name.encode(), digest_size=HASH_BYTES, person=kind.encode()).digest()


def hashed_form(value: FieldValue) -> bytes:
    """Returns a header value as bytes, equal for equal values: numbers by value (10, 10.0)."""
    match value:
        case str():
            return value.encode()
        case bytes() | bytearray():
            return bytes(value)
        case bool():
            return b"true" if value else b"false"
        case int() | float() | Decimal():
            return _number(value).encode()
        case datetime():
            return str(int(value.timestamp())).encode()
        case None:
            return b""
        case _:
            return b"\0".join(_parts(value))


def _number(value: float | Decimal) -> str:
    """Formats whole numbers without a point, others as the shortest text of the nearest double."""
    try:
        if value == int(value):
            return str(int(value))
    except (OverflowError, ValueError):  # infinite, or no number
        pass
    return repr(float(value))


def _parts(value: list[FieldValue] | dict[str, FieldValue]) -> Iterator[bytes]:
    """Yields each part with its length, so that different lists have different forms."""
    if isinstance(value, dict):
        pairs = sorted((name.encode(), hashed_form(item)) for name, item in value.items())
        forms = [form for pair in pairs for form in pair]
    else:
        forms = [hashed_form(item) for item in value]
    for form in forms:
        yield b"%d:%b" % (len(form), form)
