"""Frames of the load: numbered messages out, deliveries and confirms in, many at a time."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.bench import frames

BASIC, CONNECTION = 60, 10
PUBLISH, RETURN, DELIVER, ACK, NACK = 40, 50, 60, 80, 120
BLOCKED, UNBLOCKED = 60, 61
CANCEL_OK = 31
TX, SELECT, COMMIT, ROLLBACK = 90, 10, 20, 30
_FRAME = struct.Struct(">BHI")
_METHOD = struct.Struct(">HH")
_BODY = struct.Struct(">HQ")
_CHECK = struct.Struct(">I")
_TAG = struct.Struct(">QB")
BODY_BYTES_MIN = _BODY.size + _CHECK.size + 2


class Closed(Exception):
    """The broker closed the channel or the connection, or cancelled a consumer."""


@dataclass(frozen=True)
class Form:
    """How a publisher's messages look: where they go, how large, persistent or not."""

    publisher: int
    exchange: str
    key: str
    size: int
    properties: bytes = frames.PERSISTENT

    @property
    def filler(self) -> bytes:
        """What follows the numbers; every publisher has its own."""
        step = self.publisher * 2 + 1
        return bytes(at * step & 255 for at in range(self.size - _BODY.size - _CHECK.size))

    def body(self, number: int) -> bytes:
        head = _BODY.pack(self.publisher, number)
        return head + _CHECK.pack(zlib.crc32(head)) + self.filler


class Encoder:
    """Publishes of one form, as one piece of bytes."""

    def __init__(self, form: Form, channel: int = 1) -> None:
        self._publisher = form.publisher
        body = form.body(0)
        arguments = b"\x00\x00" + frames.short(form.exchange) + frames.short(form.key) + b"\x00"
        method = frames.method(channel, BASIC, PUBLISH, arguments)
        whole = method + frames.content(channel, body, form.properties)
        at = len(method) + whole[len(method) :].index(body[: _BODY.size + _CHECK.size])
        self._before, self._after = whole[:at], whole[at + _BODY.size + _CHECK.size :]

    def publishes(self, first: int, count: int) -> bytes:
        publisher, before, after = self._publisher, self._before, self._after
        heads = [_BODY.pack(publisher, number) for number in range(first, first + count)]
        return b"".join(
            [before + head + _CHECK.pack(zlib.crc32(head)) + after for head in heads],
        )


def read_body(body: bytes) -> tuple[int, int] | None:
    """Publisher and number, or None for a body that nobody sent."""
    head, check = body[: _BODY.size], body[_BODY.size : _BODY.size + _CHECK.size]
    if len(body) < BODY_BYTES_MIN or check != _CHECK.pack(zlib.crc32(head)):
        return None
    publisher, number = _BODY.unpack(head)
    return publisher, number


class Frames:
    """Cuts what comes from a socket into whole frames."""

    def __init__(self, rest: bytes | bytearray = b"") -> None:
        self._rest = bytes(rest)

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Type and payload of each frame that is complete; to be used up before the next."""
        data = self._rest + data if self._rest else data
        at, size = 0, len(data)
        while at + frames.FRAME_OVERHEAD_BYTES <= size:
            kind, _, length = _FRAME.unpack_from(data, at)
            end = at + length + frames.FRAME_OVERHEAD_BYTES
            if end > size:
                break
            if data[end - 1] != frames.END:
                raise Closed(f"no frame end: {data[at : at + 64].hex()}")
            yield kind, data[at + _FRAME.size : end - 1]
            at = end
        self._rest = data[at:]


def check_method(payload: bytes) -> tuple[int, int]:
    """Class and method; raises `Closed` for one that ends channel, connection or consumer."""
    found: tuple[int, int] = _METHOD.unpack_from(payload)
    if found in ((CONNECTION, 50), (20, 40)):
        code, length = struct.unpack_from(">HB", payload, 4)
        raise Closed(f"{code} {payload[7 : 7 + length].decode(errors='replace')}")
    if found == (BASIC, 30):
        raise Closed("the consumer was cancelled")
    return found


class Delivery(NamedTuple):
    tag: int
    redelivered: bool
    body: bytes


class Deliveries:
    """Puts deliveries together out of frames; `others` holds what else came."""

    def __init__(self, rest: bytes | bytearray = b"") -> None:
        self._frames = Frames(rest)
        self._tag, self._redelivered = 0, False
        self._pieces: list[bytes] = []
        self._missing = 0
        self.others: list[tuple[int, int]] = []

    def feed(self, data: bytes) -> list[Delivery]:
        """Those that are complete now."""
        found = []
        for kind, payload in self._frames.feed(data):
            if kind == frames.BODY:
                self._pieces.append(payload)
                self._missing -= len(payload)
                if not self._missing:
                    found.append(self._whole())
            elif kind == frames.HEADER:
                (self._missing,) = struct.unpack_from(">Q", payload, 4)
            elif kind == frames.METHOD:
                self._method(payload)
        return found

    def _method(self, payload: bytes) -> None:
        found = check_method(payload)
        if found == (BASIC, DELIVER):
            self._tag, self._redelivered = _TAG.unpack_from(payload, 5 + payload[4])
        else:
            self.others.append(found)

    def _whole(self) -> Delivery:
        body = b"".join(self._pieces)
        self._pieces.clear()
        return Delivery(self._tag, bool(self._redelivered), body)


class Answer(NamedTuple):
    """An ack, or a nack, of the tags from `first` to `last`."""

    first: int
    last: int
    ack: bool


class Answers:
    """Confirms out of frames: each publish is to get exactly one, in any order."""

    def __init__(self, rest: bytes | bytearray = b"") -> None:
        self._frames = Frames(rest)
        self.floor = 0
        """Up to here every tag was answered."""
        self._above: set[int] = set()

    @property
    def count(self) -> int:
        return self.floor + len(self._above)

    def feed(self, data: bytes) -> list[Answer]:
        found: list[Answer] = []
        for kind, payload in self._frames.feed(data):
            if kind == frames.METHOD:
                what = check_method(payload)
                if what in ((BASIC, ACK), (BASIC, NACK)):
                    tag, flags = _TAG.unpack_from(payload, 4)
                    found += self._settle(tag, bool(flags & 1), what[1] == ACK)
                elif what not in ((CONNECTION, BLOCKED), (CONNECTION, UNBLOCKED)):
                    raise Closed(f"method {what} to a publisher")
        return found

    def _settle(self, tag: int, multiple: bool, ack: bool) -> Iterator[Answer]:
        if not multiple:
            yield Answer(tag, tag, ack)
            self._above.add(tag)
        else:
            yield from self._up_to(tag, ack)
        while self.floor + 1 in self._above:
            self.floor += 1
            self._above.discard(self.floor)

    def _up_to(self, last: int, ack: bool) -> Iterator[Answer]:
        """All that have no answer yet, in stretches between those that have."""
        first = self.floor + 1
        for single in sorted(self._above):
            if single > last:
                break
            if single > first:
                yield Answer(first, single - 1, ack)
            first = single + 1
        if first <= last:
            yield Answer(first, last, ack)
        self._above = {one for one in self._above if one > last}
        self.floor = max(self.floor, last)


def settle(tag: int, *, multiple: bool = False) -> bytes:
    return frames.ack(1, tag, multiple=multiple)


def refuse(tag: int, *, requeue: bool) -> bytes:
    """`basic.nack` of one delivery."""
    return frames.method(1, BASIC, NACK, _TAG.pack(tag, requeue << 1))
