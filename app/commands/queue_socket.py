"""Reads a queue over WebSocket (RFC 6455), since messages are to be acknowledged.

A message leaves the queue when it was handled, and no earlier: it returns to the queue if the
connection breaks off or the command ends before that.
"""

from __future__ import annotations

import json
import secrets
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final

from ...core.wire.websocket import CLOSE, NORMAL, PING, PONG, TEXT, frame, unmasked
from .exit_codes import reason_of
from .login import Login
from .stream_connection import LOST, ConnectionLost, Message, open_stream

CLOSE_S: Final = 5.0
"""How long the answer to a close frame may take."""
READ_BYTES: Final = 65_536
_MASKED: Final = 0x80
_LENGTHS: Final = {126: 2, 127: 8}
"""How many octets the length has that follows one of these."""


class QueueSocket:
    """One connection; implements `Reading`. Up to `prefetch` messages come before they are acked;
    what is read together is acked together."""

    def __init__(self, login: Login, target: str, prefetch: int) -> None:
        """Raises as `open_stream`."""
        headers = {
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": b64encode(secrets.token_bytes(16)).decode(),
        }  # fmt: skip
        target += f"{'&' if '?' in target else '?'}ack=manual&prefetch={prefetch}"
        self._connection, self._response = open_stream(login, target, headers)
        self._rest = b""
        self._acked: list[str] = []

    def items(self) -> Iterator[Message]:
        while True:
            self._send_acks()
            for opcode, payload in self._frames(self._read()):
                if opcode == PING:
                    self._send(PONG, payload)
                elif opcode == CLOSE:
                    return
                elif opcode == TEXT:
                    yield json.loads(payload)

    def settle(self, message: Message, *, is_done: bool) -> None:
        if is_done:
            self._acked.append(message["id"])
        else:
            self._send_acks()
            self._command({"nack": message["id"]})

    def close(self) -> None:
        """Ends when the server has taken all acks, or is gone."""
        try:
            self._send_acks()
            self._send(CLOSE, NORMAL.to_bytes(2, "big"))
            self._connection.sock.settimeout(CLOSE_S)
            while all(opcode != CLOSE for opcode, _ in self._frames(self._read())):
                pass
        except ConnectionLost:
            pass  # What was not acked has returned to the queue.
        finally:
            self._response.close()
            self._connection.close()

    def _read(self) -> bytes:
        try:
            data = self._response.fp.read1(READ_BYTES)
        except LOST as error:
            raise ConnectionLost(reason_of(error)) from error
        if not data:
            raise ConnectionLost("the server has closed the connection")
        return data

    def _frames(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yields opcode and payload of the frames that are complete; a server masks none."""
        data, at = self._rest + data, 0
        while (found := _payload_at(data, at)) is not None:
            begin, end = found
            yield data[at] & 0x0F, data[begin:end]
            at = end
        self._rest = data[at:]

    def _send_acks(self) -> None:
        if self._acked:
            acked, self._acked = self._acked, []
            self._command({"ack": acked})

    def _command(self, document: dict[str, Any]) -> None:
        self._send(TEXT, json.dumps(document).encode())

    def _send(self, opcode: int, payload: bytes) -> None:
        plain, mask = frame(opcode, payload), secrets.token_bytes(4)
        head = bytearray(plain[: len(plain) - len(payload)])
        head[1] |= _MASKED
        try:
            self._connection.sock.sendall(bytes(head) + mask + unmasked(payload, mask))
        except OSError as error:
            raise ConnectionLost(reason_of(error)) from error


def _payload_at(data: bytes, at: int) -> tuple[int, int] | None:
    """Returns where the payload of the frame at an offset begins and ends, None if it is cut."""
    if len(data) < at + 2:
        return None
    length, begin = data[at + 1], at + 2
    wide = _LENGTHS.get(length, 0)
    if wide:
        length, begin = int.from_bytes(data[begin : begin + wide], "big"), begin + wide
    end = begin + length
    return (begin, end) if len(data) >= end else None
