"""Encodes and reads the bodies of small records: settlements, delivery marks, definitions and
indexes. All numbers are little-endian."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from .message_format import numbers, octets
from .record_index import RecordIndex

_QUEUE: Final = struct.Struct("<QI")
_MARK: Final = struct.Struct("<QQ")
_KEY: Final = struct.Struct("<H?")
_ONE: Final = struct.Struct("<Q")
_INDEX: Final = struct.Struct("<QII")
_COUNT: Final = struct.Struct("<I")


def encode_settled(ranges: Mapping[int, array[int]]) -> bytes:
    """Encodes, for each queue, pairs of first and last sequence number."""
    return b"".join(
        [
            buffer
            for queue_id, pairs in ranges.items()
            for buffer in (_QUEUE.pack(queue_id, len(pairs)), octets(pairs))
        ]
    )


def read_settled(body: memoryview) -> Iterator[tuple[int, array[int]]]:
    at = 0
    while at < len(body):
        queue_id, count = _QUEUE.unpack_from(body, at)
        at += _QUEUE.size
        yield queue_id, numbers("Q", body[at : at + 8 * count])
        at += 8 * count


def encode_marks(marks: Mapping[int, int]) -> bytes:
    return b"".join([_MARK.pack(*mark) for mark in marks.items()])


def read_marks(body: memoryview) -> Iterator[tuple[int, int]]:
    return _MARK.iter_unpack(body)


def encode_definition(key: bytes, value: bytes | None) -> bytes:
    return _KEY.pack(len(key), value is not None) + key + (value or b"")


def read_definition(body: memoryview) -> tuple[bytes, bytes | None]:
    size, exists = _KEY.unpack_from(body)
    middle = _KEY.size + size
    return bytes(body[_KEY.size : middle]), bytes(body[middle:]) if exists else None


def encode_number(number: int) -> bytes:
    return _ONE.pack(number)


def read_number(body: memoryview) -> int:
    return int(_ONE.unpack_from(body)[0])


def encode_indexes(indexes: Iterable[tuple[int, RecordIndex]]) -> list[bytes]:
    """Encodes a table of queue id, position and length, then the numbers of each index."""
    rows, bodies, at = [], [], 0
    for queue_id, index in indexes:
        rows.append(_INDEX.pack(queue_id, at, len(index.numbers)))
        bodies.append(octets(index.numbers))
        at += len(index.numbers)
    return [_COUNT.pack(len(rows)), *rows, *bodies]


def damaged_index(body: bytes, queue_id: int, length: int) -> array[int]:
    """Returns the numbers of a queue's index from a damaged table; empty unless the table states
    `length` numbers for the queue."""
    if len(body) < _COUNT.size:
        return numbers("Q", b"")
    (count,) = _COUNT.unpack_from(body)
    base = _COUNT.size + count * _INDEX.size
    rows = body[_COUNT.size : base]
    for queue, at, stated in _INDEX.iter_unpack(rows[: len(rows) // _INDEX.size * _INDEX.size]):
        start = base + 8 * at
        if queue == queue_id and stated == length and start + 8 * length <= len(body):
            return numbers("Q", body[start : start + 8 * length])
    return numbers("Q", b"")


QUEUE_BYTES: Final = 250
"""Approximate memory of a table for each queue, beside the numbers."""


class IndexTable:
    """All indexes of a segment, read once for all queues."""

    def __init__(self, body: memoryview) -> None:
        (count,) = _COUNT.unpack_from(body)
        self._base = _COUNT.size + count * _INDEX.size
        self._body = body
        rows = _INDEX.iter_unpack(body[_COUNT.size : self._base])
        self._locations = {queue_id: (at, length) for queue_id, at, length in rows}
        self.size_bytes = len(body) + QUEUE_BYTES * count

    def index(self, queue_id: int) -> RecordIndex:
        """Returns a queue's index; an empty one if it has none."""
        at, length = self._locations.get(queue_id, (0, 0))
        start = self._base + 8 * at
        return RecordIndex(numbers("Q", self._body[start : start + 8 * length]))
