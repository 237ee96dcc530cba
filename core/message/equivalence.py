"""Compares the arguments of a redeclaration with those in force, for exchanges and queues.

Redeclaring an existing exchange or queue requires equivalent arguments (AMQP 0-9-1 1.6.2.1.3,
1.7.2.1). The error texts are RabbitMQ's, since clients match them.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from datetime import datetime
from decimal import Decimal
from typing import Final

from ..errors import ChannelError, precondition_failed
from .model import FieldValue, SizedInt

_NOT_A_NUMBER: Final = (float, "nan")
_WIDTHS: Final = {
    b"b": "byte", b"B": "unsignedbyte", b"s": "short", b"u": "unsignedshort",
    b"i": "unsignedint", b"l": "long", b"L": "unsignedlong", b"T": "timestamp",
}  # fmt: skip


def comparable(value: FieldValue) -> Hashable:
    """Returns a hashable form of a field value that is equal for equivalent values.

    Numbers compare by value whatever their width (5, 5.0), but a bool is no number; text compares
    by its characters, whether it was sent as a string or as the same bytes in UTF-8.
    """
    match value:
        case str() | None:
            return value
        case bool():
            return (bool, value)
        case int() | float() | Decimal():
            return value if value == value else _NOT_A_NUMBER
        case bytes() | bytearray():
            return _text_or_bytes(bytes(value))
        case dict():
            return (dict, frozenset((name, comparable(item)) for name, item in value.items()))
        case list():
            return (list, tuple(comparable(item) for item in value))
        case datetime():
            return (datetime, value)


def _text_or_bytes(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def type_name(value: FieldValue) -> str:
    """Returns RabbitMQ's name of the field type; of a plain integer, the smallest that fits."""
    match value:
        case None:
            return "void"
        case bool():
            return "bool"
        case SizedInt():
            return _WIDTHS[value.kind]
        case int():
            return "signedint" if -(2**31) <= value < 2**31 else "long"
        case float():
            return "double"
        case Decimal():
            return "decimal"
        case str() | bytes():
            return "longstr"
        case bytearray():
            return "binary"
        case datetime():
            return "timestamp"
        case list():
            return "array"
        case dict():
            return "table"


def value_text(value: FieldValue) -> str:
    """Returns the value as error texts print it, without its type."""
    match value:
        case str():
            return value
        case bytes() | bytearray():
            return value.decode(errors="replace")
        case datetime():
            return str(int(value.timestamp()))
        case Decimal():
            return str(value)
        case _:
            return json.dumps(value, default=value_text, ensure_ascii=False)


def resource(kind: str, name: str, vhost: str) -> str:
    """Returns `queue 'n' in vhost 'v'`, the form in which error texts name a resource."""
    return f"{kind} '{name}' in vhost '{vhost}'"


def inequivalent_argument(
    kind: str, name: str, vhost: str, argument: str, received: FieldValue, current: FieldValue
) -> ChannelError:
    """Returns the 406 for a redeclaration that differs in `argument`; None stands for unset."""
    received_text, current_text = f"'{value_text(received)}'", f"'{value_text(current)}'"
    if received is None or current is None:
        received_text, current_text = _typed(received), _typed(current)
    return precondition_failed(
        f"inequivalent arg '{argument}' for {resource(kind, name, vhost)}: "
        f"received {received_text} but current is {current_text}"
    )


def _typed(value: FieldValue) -> str:
    if value is None:
        return "none"
    return f"the value '{value_text(value)}' of type '{type_name(value)}'"


def check_equivalent(
    kind: str, name: str, vhost: str, argument: str, received: FieldValue, current: FieldValue
) -> None:
    """Raises `ChannelError` 406 (`inequivalent_argument`) unless both values are equivalent."""
    if comparable(received) != comparable(current):
        raise inequivalent_argument(kind, name, vhost, argument, received, current)
