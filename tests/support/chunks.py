"""Reads `application/vnd.warren.chunks` by docs/streams.md alone."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

HEAD = struct.Struct("<4sIQIIQQQ")
RECORD = struct.Struct("<2sBBIQI")
META = struct.Struct("<IQIBBBI")


class Row(NamedTuple):
    """A message."""

    offset: int
    exchange: str
    routing_key: str
    properties: bytes
    body: bytes


@dataclass(frozen=True)
class Chunk:
    """A chunk; `shares` are the queues of each share, with the number of selected messages."""

    copied: bool
    first: int
    stream_id: int
    location: tuple[int, int]
    arrived_ms: int
    shares: list[tuple[tuple[int, ...], int]]
    rows: list[Row]


def chunks(data: bytes) -> list[Chunk]:
    """Fails the test unless each chunk and its checksum are right."""
    found = []
    at = 0
    while at < len(data):
        magic, flags, first, count, length, stream_id, *location = HEAD.unpack_from(data, at)
        assert magic == b"WSC1" and flags in (0, 1)
        at += HEAD.size
        record = data[at : at + length]
        at += length
        seed = zlib.crc32(struct.pack("<QQ", *((0, 0) if flags else location)))
        found.append(_chunk(bool(flags), first, count, stream_id, tuple(location), record, seed))
    return found


def rows(data: bytes) -> list[Row]:
    return [row for chunk in chunks(data) for row in chunk.rows]


def _chunk(
    copied: bool,
    first: int,
    count: int,
    stream_id: int,
    location: tuple[int, ...],
    record: bytes,
    seed: int,
) -> Chunk:
    magic, kind, _, length, _, crc = RECORD.unpack_from(record)
    assert (magic, kind, length) == (b"\xa5W", 1, len(record))
    body = record[RECORD.size :]
    assert zlib.crc32(body, zlib.crc32(record[:16], seed)) == crc
    size, arrived_ms, held, kinds, _, expiration, share_count = META.unpack_from(body)
    assert held == count
    at = META.size + expiration
    shares = []
    for _ in range(share_count):
        queues, selected = struct.unpack_from("<II", body, at)
        ids = struct.unpack_from(f"<{queues}Q", body, at + 8)
        shares.append((tuple(flagged >> 1 for flagged in ids), selected))
        at += 8 + 8 * queues + 4 * selected
    if kinds >> 4 & 4:
        (numbered,) = struct.unpack_from("<I", body, at)
        at += 4 + 16 * numbered
    messages = list(_messages(kinds & 15, count, body[at:size], body[size:]))
    assert len(messages) == count
    made = [Row(offset, *message) for offset, message in enumerate(messages, first)]
    return Chunk(copied, first, stream_id, (location[0], location[1]), arrived_ms, shares, made)


def _messages(
    kind: int, count: int, layout: bytes, data: bytes
) -> Iterator[tuple[str, str, bytes, bytes]]:
    if kind == 2:
        envelope, properties, keys = struct.unpack_from("<HII", layout)
        assert not keys and len(layout) == 10 + envelope + properties
        exchange, key = _short_strings(layout[10 : 10 + envelope])
        yield exchange, key, layout[10 + envelope :], data
        return
    for start, content, end in _bounds(kind, count, layout):
        exchange, key = _short_strings(data[start + 13 : content - 2])
        (size,) = struct.unpack_from(">I", data, content + 3)
        (body_size,) = struct.unpack_from(">Q", data, content + 11)
        body = data[end - 1 - body_size : end - 1] if body_size else b""
        yield exchange, key, data[content + 19 : content + 7 + size], body


def _bounds(kind: int, count: int, layout: bytes) -> Iterator[tuple[int, int, int]]:
    if kind == 0:
        stride, content_at, _ = struct.unpack("<III", layout)
        for start in range(0, stride * count, stride):
            yield start, start + content_at, start + stride
        return
    base, *offsets = struct.unpack(f"<{1 + 3 * count}I", layout)
    for columns in zip(*(offsets[at * count : (at + 1) * count] for at in range(3)), strict=True):
        start, content, end = (offset - base for offset in columns)
        yield start, content, end


def _short_strings(raw: bytes) -> tuple[str, str]:
    size = raw[0]
    assert len(raw) == 2 + size + raw[1 + size]
    return raw[1 : 1 + size].decode(), raw[2 + size :].decode()
