"""Frame constants, and encoders of the frames that the broker sends (AMQP 0-9-1 4.2.3).

A frame is type, channel, payload size, payload, end octet: `B H I payload CE`.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from .method_ids import BASIC_ACK, BASIC_DELIVER, BASIC_NACK, BASIC_PUBLISH, octets

METHOD: Final = 1
HEADER: Final = 2
BODY: Final = 3
HEARTBEAT: Final = 8
END: Final = 0xCE
END_OCTET: Final = b"\xce"

HEAD_BYTES: Final = 7
FRAME_OVERHEAD_BYTES: Final = 8
"""Frame head and end octet."""

PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"
HEARTBEAT_FRAME: Final = b"\x08\x00\x00\x00\x00\x00\x00\xce"

BASIC: Final = 60
PUBLISH: Final = octets(BASIC_PUBLISH)
DELIVER: Final = octets(BASIC_DELIVER)
ACK: Final = octets(BASIC_ACK)

_head = Struct(">BHI")
_method_head = Struct(">BHII")
_header_payload = Struct(">HHQ")
_long_long_octet = Struct(">QB")

ACK_FRAME_BYTES: Final = 21


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return _head.pack(kind, channel, len(payload)) + payload + END_OCTET


def method_frame(channel: int, method: int, arguments: bytes = b"") -> bytes:
    """Returns a frame of a method of `method_ids`; `arguments` are encoded."""
    head = _method_head.pack(METHOD, channel, len(arguments) + 4, method)
    return head + arguments + END_OCTET


def header_frame(channel: int, body_bytes: int, properties: bytes) -> bytes:
    """Returns a content header; `properties` is the flag word and the property list, encoded."""
    return frame(HEADER, channel, _header_payload.pack(BASIC, 0, body_bytes) + properties)


def body_frames(channel: int, body: bytes, frame_max: int) -> list[bytes]:
    """Cuts a body into frames of at most `frame_max` bytes each, frame head and end included."""
    room = frame_max - FRAME_OVERHEAD_BYTES
    return [frame(BODY, channel, body[at : at + room]) for at in range(0, len(body), room)]


def short_string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return bytes((len(raw),)) + raw


def ack_frame(channel: int, tag: int, multiple: bool) -> bytes:
    return method_frame(channel, BASIC_ACK, _long_long_octet.pack(tag, multiple))


def nack_frame(channel: int, tag: int, multiple: bool) -> bytes:
    return method_frame(channel, BASIC_NACK, _long_long_octet.pack(tag, multiple))
