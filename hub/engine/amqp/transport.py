"""Lets the client library read whatever AMQP clients have published.

RabbitMQ passes property lists and routing keys on as they came. The library loses its connection
over a time beyond the year 9999, or a text that is not UTF-8. So it gets each property list as one
header of octets, which `encoding.py` decodes, and no other octets in routing keys.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Final, cast

from aiormq.connection import TCPTransportFactory, TLSTransportFactory, TransportFactory
from yarl import URL

from ....core.errors import ProtocolError
from ....core.wire import properties as wire
from ....core.wire.frames import HEADER, METHOD
from ....core.wire.method_ids import BASIC_DELIVER, BASIC_GET_OK
from .address import EngineAddress

RAW: Final = "raw"
"""The header with a property list as it was received."""
_READ_BYTES: Final = 64 * 1024
_FRAME_HEAD_BYTES: Final = 7
_CONTENT_HEAD_BYTES: Final = 12
_PROTOCOL_HEADER_BYTES: Final = 8
_DELIVERIES: Final = (BASIC_DELIVER.to_bytes(4), BASIC_GET_OK.to_bytes(4))
_OCTETS: Final = b"x"


def tls_context(address: EngineAddress) -> ssl.SSLContext | None:
    """Returns how certificates of the cluster are verified; None without TLS.

    Raises `ssl.SSLError` if the file of authorities has none.
    """
    if address.scheme != "amqps":
        return None
    return ssl.create_default_context(cafile=address.cacertfile or None)


class CheckedTransport(TransportFactory):
    """Opens connections whose reader the library survives."""

    def __init__(self, *, is_tls: bool) -> None:
        self._inner = TLSTransportFactory() if is_tls else TCPTransportFactory()

    async def create(
        self, url: URL, **options: Any
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await self._inner.create(url, **options)
        return cast(asyncio.StreamReader, CheckedReader(reader)), writer


class CheckedReader:
    """The part of `StreamReader` that the library uses."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._buffer = b""
        """What was read; the first `_taken` octets were taken."""
        self._taken = 0
        self._frame = b""
        self._at = 0

    def at_eof(self) -> bool:
        is_empty = self._at >= len(self._frame) and self._taken >= len(self._buffer)
        return is_empty and self._reader.at_eof()

    async def readexactly(self, count: int) -> bytes:
        if self._at >= len(self._frame):
            self._frame = await self._next()
            self._at = 0
        self._at += count
        return self._frame[self._at - count : self._at]

    async def read(self, count: int = -1) -> bytes:
        rest = self._frame[self._at :] + self._buffer[self._taken :]
        self._frame = self._buffer = b""
        self._at = self._taken = 0
        return rest + await self._reader.read(count)

    async def _next(self) -> bytes:
        head = await self._take(_FRAME_HEAD_BYTES)
        if head.startswith(b"AMQP"):
            return head + await self._take(_PROTOCOL_HEADER_BYTES - len(head))
        content = await self._take(int.from_bytes(head[3:]) + 1)
        if head[0] == HEADER:
            content = _wrapped(content)
        elif head[0] == METHOD and content[:4] in _DELIVERIES:
            content = _with_text_key(content)
        return head[:3] + (len(content) - 1).to_bytes(4) + content

    async def _take(self, count: int) -> bytes:
        """Reads all that has come, which may be many frames."""
        end = self._taken + count
        while len(self._buffer) < end:
            data = await self._reader.read(_READ_BYTES)
            if not data:
                raise asyncio.IncompleteReadError(self._buffer[self._taken :], count)
            self._buffer = self._buffer[self._taken :] + data
            self._taken, end = 0, count
        taken = self._buffer[self._taken : end]
        self._taken = end
        return taken


def _wrapped(content: bytes) -> bytes:
    """Returns the payload of a content header, and the frame's end, with its property list as a
    header of another one. It keeps the message-id, by which returned messages are known."""
    raw, end = content[_CONTENT_HEAD_BYTES:-1], content[-1:]
    pair = bytes([len(RAW)]) + RAW.encode() + _OCTETS + len(raw).to_bytes(4) + raw
    parts = {wire.HEADERS: len(pair).to_bytes(4) + pair}
    try:
        wire.read_attributes(raw, 0, len(raw))
    except ProtocolError:
        return content[:_CONTENT_HEAD_BYTES] + wire.join(parts) + end
    message_id = wire.split(raw).get(wire.MESSAGE_ID)
    if message_id is not None:
        parts[wire.MESSAGE_ID] = message_id
    return content[:_CONTENT_HEAD_BYTES] + wire.join(parts) + end


def _with_text_key(content: bytes) -> bytes:
    """Returns the payload of a delivery with a routing key in UTF-8: other octets become `?`."""
    at = 4
    if int.from_bytes(content[:4]) == BASIC_DELIVER:
        at += 1 + content[at]  # the consumer tag
    at += 9  # the delivery tag, and whether it is redelivered
    at += 1 + content[at]  # the exchange
    end = at + 1 + content[at]
    key = content[at + 1 : end]
    try:
        key.decode()
    except UnicodeDecodeError:
        text = key.decode(errors="replace").replace("\ufffd", "?").encode()
        return content[:at] + bytes([len(text)]) + text + content[end:]
    return content
