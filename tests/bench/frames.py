"""AMQP 0-9-1 frames, encoded once so that writing them costs the generator nothing."""

from __future__ import annotations

import struct
from dataclasses import dataclass

METHOD, HEADER, BODY = 1, 2, 3
END = 0xCE
FRAME_OVERHEAD_BYTES = 8
MAX_FRAME_BYTES = 131_072

BASIC = 60
BASIC_PUBLISH, BASIC_DELIVER, BASIC_ACK, BASIC_NACK = 40, 60, 80, 120

NO_PROPERTIES = b"\x00\x00"
TRANSIENT = b"\x10\x00\x01"
PERSISTENT = b"\x10\x00\x02"
WITH_OFFSET = b"\x30\x00" + b"\x00\x00\x00\x19\x0fx-stream-offsetl" + bytes(8) + b"\x02"
"""The properties of a persistent message as a stream delivers it."""
QUORUM = b"\x0cx-queue-typeS\x00\x00\x00\x06quorum"
STREAM = b"\x0cx-queue-typeS\x00\x00\x00\x06stream"
PRIORITIES = b"\x0ex-max-priorityI\x00\x00\x00\x0a"
"""Arguments of queues."""

_HEAD = struct.Struct(">BHI")
_METHOD_HEAD = struct.Struct(">HH")
_ACK_BLOCK = 65_536


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """One frame with its end octet (AMQP 0-9-1 2.3.5)."""
    return _HEAD.pack(kind, channel, len(payload)) + payload + bytes((END,))


def method(channel: int, class_id: int, method_id: int, arguments: bytes = b"") -> bytes:
    return frame(METHOD, channel, _METHOD_HEAD.pack(class_id, method_id) + arguments)


def short(text: str) -> bytes:
    """A short string: one length octet, then UTF-8."""
    data = text.encode()
    return bytes((len(data),)) + data


def long(data: bytes) -> bytes:
    """A long string or a table's frame: four length octets, then the bytes."""
    return struct.pack(">I", len(data)) + data


def content(channel: int, body: bytes, properties: bytes) -> bytes:
    """A content header frame and the body frames, cut at the largest frame."""
    step = MAX_FRAME_BYTES - FRAME_OVERHEAD_BYTES
    header = frame(HEADER, channel, struct.pack(">HHQ", BASIC, 0, len(body)) + properties)
    pieces = (body[start : start + step] for start in range(0, len(body), step))
    return header + b"".join(frame(BODY, channel, piece) for piece in pieces)


@dataclass(frozen=True)
class Message:
    """A published message; `properties` is the flag word with the property list after it."""

    exchange: str
    key: str
    body: bytes
    properties: bytes = NO_PROPERTIES

    def published(self, channel: int = 1) -> bytes:
        arguments = b"\x00\x00" + short(self.exchange) + short(self.key) + b"\x00"
        head = method(channel, BASIC, BASIC_PUBLISH, arguments)
        return head + content(channel, self.body, self.properties)

    def delivered(self, tag: int, consumer: str, channel: int = 1) -> bytes:
        """The exact bytes that a consumer gets for a first delivery."""
        arguments = short(consumer) + struct.pack(">QB", tag, 0)
        arguments += short(self.exchange) + short(self.key)
        head = method(channel, BASIC, BASIC_DELIVER, arguments)
        return head + content(channel, self.body, self.properties)


@dataclass(frozen=True)
class Stream:
    """Whole publishes of equal size, written over and over; `data` holds `count` of them."""

    data: bytes
    size: int

    @property
    def count(self) -> int:
        return len(self.data) // self.size

    @classmethod
    def repeat(cls, message: Message, count: int = 8_192, channel: int = 1) -> Stream:
        one = message.published(channel)
        return cls(one * max(1, min(count, 2**22 // len(one))), len(one))

    @classmethod
    def join(cls, publishes: list[bytes]) -> Stream:
        size = len(publishes[0])
        if any(len(one) != size for one in publishes):
            raise ValueError("the publishes of a stream must have one size")
        return cls(b"".join(publishes), size)


def ack(channel: int, tag: int, *, multiple: bool) -> bytes:
    return method(channel, BASIC, BASIC_ACK, struct.pack(">QB", tag, multiple))


class SingleAcks:
    """One ack frame per delivery tag, made 65,536 tags at a time: the low octets never change.

    With a `step`, a power of two, only tags that it divides are acked.
    """

    def __init__(self, channel: int, step: int = 1) -> None:
        lows = range(0, _ACK_BLOCK, step)
        frames = b"".join(ack(channel, low, multiple=False) for low in lows)
        self.size = len(frames) // len(lows)
        self._step = step
        self._block = bytearray(frames)
        self._high = 0

    def frames(self, first: int, last: int) -> bytes:
        """The ack frames of the tags `first` to `last`, both included."""
        parts = []
        first = -(-first // self._step) * self._step
        while first <= last:
            high, low = divmod(first, _ACK_BLOCK)
            until = min(last, first - low + _ACK_BLOCK - 1)
            self._turn_to(high)
            start, end = low // self._step, until % _ACK_BLOCK // self._step + 1
            parts.append(self._block[start * self.size : end * self.size])
            first += (end - start) * self._step
        return b"".join(parts)

    def _turn_to(self, high: int) -> None:
        if high == self._high:
            return
        tag_offset = _HEAD.size + _METHOD_HEAD.size
        for position, octet in enumerate(high.to_bytes(6, "big")):
            self._block[tag_offset + position :: self.size] = bytes((octet,)) * (
                _ACK_BLOCK // self._step
            )
        self._high = high
