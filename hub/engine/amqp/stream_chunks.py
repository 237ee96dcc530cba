"""Makes chunks (docs/streams.md) of messages that were read from a stream of RabbitMQ.

Messages become the frames that publish them. Those that arrived in the same second are one record,
since a record has one time of arrival, and RabbitMQ's times have seconds.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final

from ....core.message.model import Message
from ....core.message.stream_read import StreamRead
from ....core.wire import properties as wire
from ....core.wire.frames import BODY, PUBLISH, frame, header_frame
from ....core.wire.frames import METHOD as METHOD_FRAME
from .encoding import StreamMessage

_HEAD: Final = Struct("<4sIQIIQQQ")
_COPIED: Final = 1
_RECORD: Final = Struct("<2sBBIQI")
_MESSAGES: Final = 1
_META: Final = Struct("<IQIBBBI")
_META_BYTES: Final = 23
_SCATTERED, _NUMBERED = 1, 0x40
_SHARE: Final = Struct("<IIQ")
_NUMBERS: Final = Struct("<IQQ")
_PLACE_CRC: Final = zlib.crc32(bytes(16))
"""Of a copy, which has no place in a log."""
_SHARES_BYTES: Final = _SHARE.size + _NUMBERS.size
_RECORD_BYTES: Final = _HEAD.size + _RECORD.size + _META_BYTES + _SHARES_BYTES + 4
_PLACES_BYTES: Final = 12
_CHANNEL: Final = 1


class ChunkWriter:
    """Collects messages of a stream, in order and without gaps, until they have `limit_bytes`."""

    def __init__(self, stream_id: int, start: int, limit_bytes: int) -> None:
        self._stream_id = stream_id
        self._start = start
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._records: list[tuple[int, list[tuple[bytes, bytes, bytes]]]] = []
        """The time of arrival of each, and its messages: method, header and body frames."""
        self.next_offset = start

    @property
    def is_empty(self) -> bool:
        return not self._records

    def add(self, one: StreamMessage) -> bool:
        """Returns whether there was room, as there is for the first one."""
        frames = _frames(one.message)
        is_new = not self._records or self._records[-1][0] != one.arrived_s
        size = sum(map(len, frames)) + _PLACES_BYTES + is_new * _RECORD_BYTES
        if self._records and self._size_bytes + size > self._limit_bytes:
            return False
        if is_new:
            self._records.append((one.arrived_s, []))
        self._records[-1][1].append(frames)
        self._size_bytes += size
        self.next_offset += 1
        return True

    def read(self) -> StreamRead:
        """Returns the chunks."""
        pieces = list(self._chunks())
        checksum = 0
        for piece in pieces:
            checksum = zlib.crc32(piece, checksum)
        arrived_ms = self._records[0][0] * 1000 if self._records else 0
        return StreamRead(self._start, self.next_offset, pieces, arrived_ms, checksum)

    def _chunks(self) -> Iterator[bytes]:
        offset = self._start
        for arrived_s, messages in self._records:
            yield self._chunk(offset, arrived_s * 1000, messages)
            offset += len(messages)

    def _chunk(
        self, offset: int, arrived_ms: int, messages: list[tuple[bytes, bytes, bytes]]
    ) -> bytes:
        """Returns a chunk of messages that arrived together: a record with one share."""
        count = len(messages)
        shares = _SHARE.pack(1, 0, self._stream_id << 1)
        shares += _NUMBERS.pack(1, self._stream_id, offset)
        layout = _layout(messages)
        meta = _META.pack(
            _META_BYTES + len(shares) + len(layout), arrived_ms, count, _SCATTERED | _NUMBERED,
            0, 0, 1,
        )  # fmt: skip
        data = b"".join(part for message in messages for part in message)
        body = b"".join((meta, shares, layout, data))
        length = _RECORD.size + len(body)
        head = _RECORD.pack(b"\xa5W", _MESSAGES, 0, length, 0, 0)[:-4]
        crc = zlib.crc32(body, zlib.crc32(head, _PLACE_CRC))
        chunk = _HEAD.pack(b"WSC1", _COPIED, offset, count, length, self._stream_id, 0, 0)
        return b"".join((chunk, head, crc.to_bytes(4, "little"), body))


def _frames(message: Message) -> tuple[bytes, bytes, bytes]:
    exchange, key = message.exchange.encode(), message.routing_key.encode()
    envelope = bytes((len(exchange),)) + exchange + bytes((len(key),)) + key
    method = frame(METHOD_FRAME, _CHANNEL, PUBLISH + b"\0\0" + envelope + b"\0")
    header = header_frame(_CHANNEL, len(message.body), wire.encode(message.properties))
    return method, header, frame(BODY, _CHANNEL, message.body) if message.body else b""


def _layout(messages: list[tuple[bytes, bytes, bytes]]) -> bytes:
    """Returns where each message begins, where its header frame does, and where it ends."""
    starts, contents, ends = list[int](), list[int](), list[int]()
    at = 0
    for method, header, body in messages:
        starts.append(at)
        contents.append(at + len(method))
        at += len(method) + len(header) + len(body)
        ends.append(at)
    return Struct(f"<{1 + 3 * len(messages)}I").pack(0, *starts, *contents, *ends)
