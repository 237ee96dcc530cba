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
    """One message as an application sees it; the hot path never makes one."""

    exchange: str
    routing_key: str
    properties: Properties
    body: bytes
    redelivered: bool = False
