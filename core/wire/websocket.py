"""Decodes and encodes WebSocket frames of a server (RFC 6455), without a socket.

Payload is unmasked as it comes and passed on at once, without waiting for whole messages: AMQP has
frames of its own, and a client that announces a message of a terabyte costs no memory. Output has
one AMQP frame a message, as in LavinMQ.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final, NamedTuple

from .frames import FRAME_OVERHEAD_BYTES, PROTOCOL_HEADER

CONTINUATION, TEXT, BINARY = 0, 1, 2
CLOSE, PING, PONG = 8, 9, 10
NORMAL, PROTOCOL_ERROR, UNSUPPORTED, INVALID_DATA = 1000, 1002, 1003, 1007
"""Close codes (RFC 6455 7.4.1)."""
NO_CODE: Final = 0
"""The code of a close frame without one."""

_FINAL, _RESERVED, _OPCODE, _CONTROL = 0x80, 0x70, 0x0F, 0x08
_MASKED, _LENGTH = 0x80, 0x7F
_SHORT, _LONG = 126, 127
"""Lengths that say that the real one follows, in 2 or in 8 octets."""
_MASK_BYTES: Final = 4
_CONTROL_MAX_BYTES: Final = 125
_CHUNK_BYTES: Final = 8_192
"""Unmasking is three times as fast in chunks as for a whole read."""
_FRAMES_AT_ONCE: Final = 4_096
"""Some 5 ms of work; a read can hold ten times as many."""


class Ending(NamedTuple):
    """The end of the input: close code and reason, and whether the client sent a close frame."""

    code: int
    reason: str
    by_client: bool


class Inbound:
    """Decodes the input of a client."""

    takes_text: ClassVar[bool] = False
    """Whether text messages are accepted: AMQP needs binary ones."""

    def __init__(self) -> None:
        self.ping: bytes | None = None
        """The payload of the last unanswered ping; the caller answers and resets it."""
        self.ended: Ending | None = None
        self.unfinished = False
        """Frames of the last read are left: call `receive(b"")` in a later turn."""
        self._rest = b""
        """Unhandled input; or an incomplete frame head or control frame."""
        self._left = 0
        """Octets missing of the current data frame."""
        self._mask = b""
        self._in_message = False

    def receive(self, data: bytes) -> bytes:
        """Returns the payload of binary messages in this read.

        There is none after `ended` is set: the client has sent close, or broken the protocol.
        """
        if self._rest:
            data, self._rest = self._rest + data, b""
        self.unfinished = False
        pieces: list[bytes] = []
        at, size, frames = 0, len(data), 0
        while at < size and self.ended is None:
            if self._left:
                piece = data[at : at + self._left]
                pieces.append(self._unmasked(piece))
                self._left -= len(piece)
                at += len(piece)
                continue
            self.unfinished = frames == _FRAMES_AT_ONCE
            end = -1 if self.unfinished else self._frame(data, at)
            if end < 0:
                self._rest = data[at:]
                break
            at, frames = end, frames + 1
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _frame(self, data: bytes, at: int) -> int:
        """Reads a frame head, or a whole control frame; returns the next offset, -1 for incomplete
        ones."""
        size = len(data)
        if size - at < 2:
            return -1
        first, second = data[at], data[at + 1]
        fault = self._fault(first, second)
        if fault is not None:
            self.ended = fault
            return size
        at, length = at + 2, second & _LENGTH
        if length >= _SHORT:
            wide = 2 if length == _SHORT else 8
            if size - at < wide:
                return -1
            length = int.from_bytes(data[at : at + wide], "big")
            if length >> 63:
                self.ended = _refused(PROTOCOL_ERROR, "a length of more than 63 bits")
                return size
            at += wide
        if first & _CONTROL:
            return self._control(first & _OPCODE, data, at, length)
        if size - at < _MASK_BYTES:
            return -1
        self._mask = data[at : at + _MASK_BYTES]
        self._left = length
        self._in_message = not first & _FINAL
        return at + _MASK_BYTES

    def _fault(self, first: int, second: int) -> Ending | None:
        """Checks the first two octets of a frame (RFC 6455 5.1, 5.2, 5.4, 5.5)."""
        opcode = first & _OPCODE
        if first & _RESERVED:
            return _refused(PROTOCOL_ERROR, "reserved bits are set")
        if not second & _MASKED:
            return _refused(PROTOCOL_ERROR, "a client's frame is not masked")
        if opcode & _CONTROL:
            if opcode > PONG:
                return _refused(PROTOCOL_ERROR, f"unknown opcode {opcode}")
            if not first & _FINAL or second & _LENGTH > _CONTROL_MAX_BYTES:
                return _refused(PROTOCOL_ERROR, "a control frame is too long or fragmented")
            return None
        if opcode > BINARY:
            return _refused(PROTOCOL_ERROR, f"unknown opcode {opcode}")
        if (opcode == CONTINUATION) is not self._in_message:
            return _refused(PROTOCOL_ERROR, "a message or continuation is out of order")
        if opcode == TEXT and not self.takes_text:
            return _refused(UNSUPPORTED, "AMQP needs binary messages")
        return None

    @staticmethod
    def is_control(first: int) -> bool:
        """Returns whether a frame with this first octet is a control frame."""
        return bool(first & _CONTROL)

    def _control(self, opcode: int, data: bytes, at: int, length: int) -> int:
        end = at + _MASK_BYTES + length
        if len(data) < end:
            return -1
        payload = unmasked(data[at + _MASK_BYTES : end], data[at : at + _MASK_BYTES])
        if opcode == PING:
            self.ping = payload
        elif opcode == CLOSE:
            self.ended = _closed_with(payload)
        return end

    def _unmasked(self, piece: bytes) -> bytes:
        plain = unmasked(piece, self._mask)
        turn = len(piece) % _MASK_BYTES
        self._mask = self._mask[turn:] + self._mask[:turn]
        return plain


def unmasked(data: bytes, mask: bytes) -> bytes:
    """XORs the octets with the repeated mask (RFC 6455 5.3)."""
    size = len(data)
    if size <= _CHUNK_BYTES:
        key = int.from_bytes((mask * (size // _MASK_BYTES + 1))[:size], "little")
        return (int.from_bytes(data, "little") ^ key).to_bytes(size, "little")
    chunks = (data[at : at + _CHUNK_BYTES] for at in range(0, size, _CHUNK_BYTES))
    return b"".join([unmasked(chunk, mask) for chunk in chunks])


def _refused(code: int, reason: str) -> Ending:
    return Ending(code, reason, by_client=False)


def _closed_with(payload: bytes) -> Ending:
    """Parses a client's close frame (RFC 6455 5.5.1, 7.4)."""
    if not payload:
        return Ending(NO_CODE, "", by_client=True)
    code = int.from_bytes(payload[:2], "big")
    registered = 1000 <= code <= 1014 and code not in (1004, 1005, 1006)
    if len(payload) < 2 or not (registered or 3000 <= code <= 4999):
        return _refused(PROTOCOL_ERROR, "a close frame has no valid code")
    try:
        payload[2:].decode()
    except UnicodeDecodeError:
        return _refused(INVALID_DATA, "the reason of a close frame is not UTF-8")
    return Ending(code, "", by_client=True)


# -- what goes out


def frame(opcode: int, payload: bytes) -> bytes:
    """Encodes a whole message or control frame; a server does not mask."""
    return _head(opcode, len(payload)) + payload


def frames(opcode: int, payloads: Iterable[bytes]) -> bytes:
    """Encodes many messages."""
    return b"".join([_head(opcode, len(payload)) + payload for payload in payloads])


def close_frame(code: int, reason: str = "") -> bytes:
    return frame(CLOSE, code.to_bytes(2, "big") + reason.encode() if code else b"")


def messages(data: bytes | bytearray) -> bytes:
    """Encodes AMQP frames, or the protocol header, as binary messages, one each."""
    if data.startswith(PROTOCOL_HEADER[:4]):
        return frame(BINARY, bytes(data))
    pieces: list[bytes | bytearray] = []
    at, size = 0, len(data)
    while at < size:
        end = at + FRAME_OVERHEAD_BYTES + int.from_bytes(data[at + 3 : at + 7], "big")
        piece = data[at:end]
        pieces += _head(BINARY, len(piece)), piece
        at = end
    return b"".join(pieces)


def _head(opcode: int, length: int) -> bytes:
    if length < _SHORT:
        return bytes((_FINAL | opcode, length))
    if length < 1 << 16:
        return bytes((_FINAL | opcode, _SHORT)) + length.to_bytes(2, "big")
    return bytes((_FINAL | opcode, _LONG)) + length.to_bytes(8, "big")
