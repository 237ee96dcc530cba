"""AMQP frames built by hand, so that a test can break any byte of them.

`pamqp` lends the order and the types of a method's fields and nothing else: it refuses to
encode much of what a server has to refuse too.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pamqp import commands

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_END = b"\xce"
FRAME_OVERHEAD = 8
FRAME_MIN = 4096
BASIC = 60


@dataclass(frozen=True)
class Raw:
    """Bytes that are put into a table or a field unchanged; in a table with their type octet."""

    content: bytes


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + FRAME_END


def heartbeat(channel: int = 0) -> bytes:
    return frame(HEARTBEAT, channel, b"")


def short_string(value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return struct.pack(">B", len(content)) + content


def long_string(value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return struct.pack(">I", len(content)) + content


def field_value(value: object) -> bytes:
    """Encodes a value of a table with its type octet (AMQP 0-9-1 4.2.5.5, as RabbitMQ reads it)."""
    match value:
        case Raw(content):
            return content
        case bool():
            return b"t" + struct.pack(">?", value)
        case int():
            small = -(1 << 31) <= value < 1 << 31
            return b"I" + struct.pack(">i", value) if small else b"l" + struct.pack(">q", value)
        case float():
            return b"d" + struct.pack(">d", value)
        case str():
            return b"S" + long_string(value)
        case bytes():
            return b"x" + long_string(value)
        case Mapping():
            return b"F" + table(value)
        case list():
            return b"A" + long_string(b"".join(map(field_value, value)))
        case None:
            return b"V"
        case datetime():
            return b"T" + struct.pack(">Q", int(value.timestamp()))
    raise TypeError(f"no field value: {value!r}")


def table(value: Mapping[str, object] | Raw | None) -> bytes:
    if isinstance(value, Raw):
        return value.content
    items = (value or {}).items()
    return long_string(b"".join(short_string(key) + field_value(item) for key, item in items))


_NUMBERS = {"octet": ">B", "short": ">H", "long": ">I", "longlong": ">Q", "timestamp": ">Q"}


def _field(kind: str, value: Any) -> bytes:
    if isinstance(value, Raw):
        return value.content
    if number := _NUMBERS.get(kind):
        return struct.pack(number, value or 0)
    if kind == "table":
        return table(value)
    return (short_string if kind == "shortstr" else long_string)(value or "")


def _bits(values: list[bool]) -> bytes:
    packed = sum(value << place for place, value in enumerate(values))
    return struct.pack(">B", packed) if values else b""


def method_type(name: str) -> Any:
    """Returns the class that pamqp has for `"Queue.DeclareOk"`."""
    class_name, method_name = name.split(".")
    return getattr(getattr(commands, class_name), method_name)


def method(name: str, **values: object) -> bytes:
    """Encodes the payload of a method frame; a missing field is zero, false or empty."""
    kind = method_type(name)
    parts = [struct.pack(">I", kind.index)]
    bits: list[bool] = []
    for field in kind.attributes():
        value = values.pop(field, None)
        if kind.amqp_type(field) == "bit":
            bits.append(bool(value))
            continue
        parts += _bits(bits), _field(kind.amqp_type(field), value)
        bits = []
    assert not values, f"{name} has no field {sorted(values)}"
    return b"".join([*parts, _bits(bits)])


def content_header(
    body_size: int, properties: Mapping[str, object] | Raw | None = None, class_id: int = BASIC
) -> bytes:
    """Encodes the payload of a header frame; `Raw` properties are the flags and all that
    follows."""
    head = struct.pack(">HHQ", class_id, 0, body_size)
    if isinstance(properties, Raw):
        return head + properties.content
    values = dict(properties or {})
    kind = commands.Basic.Properties
    flags, parts = 0, []
    for field in kind.attributes():
        if field in values:
            flags |= kind.flags[field]
            parts.append(_field(kind.amqp_type(field), values.pop(field)))
    assert not values, f"no properties {sorted(values)}"
    return head + struct.pack(">H", flags) + b"".join(parts)


def body_frames(channel: int, body: bytes, frame_max: int) -> bytes:
    """Encodes as many body frames as are needed; none for an empty body."""
    step = frame_max - FRAME_OVERHEAD
    return b"".join(frame(BODY, channel, body[at : at + step]) for at in range(0, len(body), step))


def publish_frames(
    channel: int,
    body: bytes = b"",
    properties: Mapping[str, object] | Raw | None = None,
    frame_max: int = 131_072,
    **fields: object,
) -> bytes:
    """Encodes a whole publish; `fields` are those of `Basic.Publish`."""
    return (
        frame(METHOD, channel, method("Basic.Publish", **fields))
        + frame(HEADER, channel, content_header(len(body), properties))
        + body_frames(channel, body, frame_max)
    )
