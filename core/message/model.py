"""Values that every room of the core speaks: properties, arguments, names."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Union

FieldValue = Union[
    None, bool, int, float, str, bytes, bytearray, Decimal, datetime,
    "list[FieldValue]", "dict[str, FieldValue]",
]  # fmt: skip
"""What an AMQP field table can hold (AMQP 0-9-1 4.2.5.5)."""

Table = dict[str, FieldValue]


class SizedInt(int):
    """A whole number that came in another width than the usual 32 bits with a sign; `kind` is its
    type octet. Equal to the plain number; kept and told with its width."""

    kind: bytes


def _sized(kind: str) -> type[SizedInt]:
    return type(f"SizedInt_{kind}", (SizedInt,), {"kind": kind.encode()})


SIZED = {ord(kind): _sized(kind) for kind in "bBsuilL"}
"""By type octet (AMQP 0-9-1 4.2.5.5, as RabbitMQ has it)."""


class MessageHeaders(Table):
    """The headers of a message that is to be routed, and beside them its whole property list.

    `properties` is the list as it is on the wire, flag word first, for exchanges that look at
    more than headers.
    """

    __slots__ = ("properties",)

    def __init__(self, headers: Table, properties: bytes) -> None:
        super().__init__(headers)
        self.properties = properties


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


PROPERTY_NAMES: tuple[str, ...] = tuple(field.name for field in fields(Properties))


@dataclass(slots=True)
class Message:
    """One message as an application sees it; the hot path never makes one.

    Several messages may share their `properties`: whoever wants others makes a copy.
    """

    exchange: str
    routing_key: str
    properties: Properties
    body: bytes
    redelivered: bool = False
