"""The header `x-delay`: the delay of a message at a delayed exchange.

Whole milliseconds, 1 to 4,294,967,295. As in RabbitMQ's plugin, text of digits and numbers with a
fraction count too (the fraction is cut off), and a released message carries the negative value, so
that it is not delayed again when its headers are republished.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

from ..message.model import FieldValue, Table
from .properties import HEADERS, join, split
from .tables import decode_value, encode_value, entries, join_entries

DELAY: Final = "x-delay"
DELAY_MAX_MS: Final = 2**32 - 1
_DELAY: Final = DELAY.encode()
_NO_TABLE: Final = b"\x00\x00\x00\x00"
_TEXT_MAX: Final = 20


def read_delay_ms(value: FieldValue) -> int:
    """Returns the delay in milliseconds of a value of the header, 0 for none.

    Raises `ValueError` for an invalid value.
    """
    number = _number(value)
    if number is None:
        raise ValueError("milliseconds are needed, as a whole number")
    if abs(number) > DELAY_MAX_MS:
        raise ValueError(f"{DELAY_MAX_MS} milliseconds at most")
    return max(0, number)


def _number(value: FieldValue) -> int | None:
    match value:
        case None:
            return 0
        case bool():
            return None
        case int():
            return value
        case float() | Decimal():
            return int(value) if math.isfinite(value) else None
        case str():
            digits = value[1:] if value[:1] in ("+", "-") else value
            whole = digits.isascii() and digits.isdigit() and len(digits) <= _TEXT_MAX
            return int(value) if whole else None
        case _:
            return None


def delay_ms_of(properties: bytes) -> int:
    """Returns the delay of a message whose header was checked when it was published."""
    table = split(properties).get(HEADERS, _NO_TABLE)
    for name, raw in entries(table):
        if name == _DELAY:
            return read_delay_ms(decode_value(raw))
    return 0


def negate_delay(properties: bytes) -> tuple[bytes, Table]:
    """Negates the delay of a released message; returns property list and headers.

    All other headers stay byte for byte.
    """
    parts = split(properties)
    pairs = dict(entries(parts.get(HEADERS, _NO_TABLE)))
    pairs[_DELAY] = encode_value(-read_delay_ms(decode_value(pairs.get(_DELAY, b"V"))))
    parts[HEADERS] = join_entries(pairs)
    headers = {name.decode(): decode_value(value) for name, value in pairs.items()}
    return join(parts), headers
