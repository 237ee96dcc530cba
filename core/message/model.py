"""Value types used in all of core: field values, message headers, properties, messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Final, Union

FieldValue = Union[
    None, bool, int, float, str, bytes, bytearray, Decimal, datetime,
    "list[FieldValue]", "dict[str, FieldValue]",
]  # fmt: skip
"""A value in an AMQP field table (AMQP 0-9-1 4.2.5.5)."""

Table = dict[str, FieldValue]


class SizedInt(int):
    """An integer received in another width than the usual signed 32 bits; `kind` is its type octet.

    It equals the plain number, and is stored and sent in its width.
    """

    kind: bytes


class Int8(SizedInt):
    kind = b"b"


class UnsignedInt8(SizedInt):
    kind = b"B"


class Int16(SizedInt):
    kind = b"s"


class UnsignedInt16(SizedInt):
    kind = b"u"


class UnsignedInt32(SizedInt):
    kind = b"i"


class Int64(SizedInt):
    kind = b"l"


class UnsignedInt64(SizedInt):
    kind = b"L"


class Timestamp(SizedInt):
    """Seconds since 1970 of a time outside the years 1 to 9999, for which there is no datetime."""

    kind = b"T"


SIZED: Final = {
    sized.kind[0]: sized
    for sized in (Int8, UnsignedInt8, Int16, UnsignedInt16, UnsignedInt32, Int64, UnsignedInt64)
}
"""Integer types by type octet (AMQP 0-9-1 4.2.5.5, with RabbitMQ's octets)."""


class MessageHeaders(Table):
    """The headers of a message to be routed, with its whole property list.

    `properties` is the encoded list, flag word first, for exchanges that route by more than
    headers.
    """

    __slots__ = ("properties",)

    def __init__(self, headers: Table, properties: bytes) -> None:
        super().__init__(headers)
        self.properties = properties


def copy_keys(headers: Table) -> list[str]:
    """Returns the further routing keys of a message that was accepted, from its header CC."""
    keys = headers.get("CC")
    return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []


@dataclass(slots=True)
class Properties:
    """The fourteen properties of class basic, all optional (AMQP 0-9-1 1.8.2).

    `expiration` is milliseconds as a decimal string, `timestamp` whole seconds since 1970,
    `delivery_mode` 2 for persistent.
    """

    content_type: str | None = None
    content_encoding: str | None = None
    headers: Table | None = None
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None
    cluster_id: str | None = None


PROPERTY_NAMES: Final[tuple[str, ...]] = tuple(field.name for field in fields(Properties))


@dataclass(slots=True)
class Message:
    """One message as an application sees it; the hot path never creates one.

    Several messages may share their `properties`: copy them before changing them.
    """

    exchange: str
    routing_key: str
    properties: Properties
    body: bytes
    redelivered: bool = False


Numbered = tuple[int, Message]
"""A message with its sequence number."""

ReadMessages = Callable[[], Sequence[Numbered]]
"""Reads messages from where they are; to be called at once, or not at all."""

Row = tuple[bytes, bytes, bytes]
"""A message to be published as a pipeline writes it: routing key in UTF-8, AMQP property list,
body."""
