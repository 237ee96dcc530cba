"""The records of a segment file, and the header of every file.

A record is a head of 20 bytes (magic, kind, flags, total length, sequence number, CRC) and its
body; all numbers are little-endian. The CRC covers head and body and is seeded with segment and
offset, so that a record is valid only where it was written.

A file begins with a header that has a CRC too (`FileHeader`): its kind, the format version, the
store's id and the file's number.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final

from ..errors import ConfigError

MAGIC: Final = b"\xa5W"
HEAD_BYTES: Final = 20
FORMAT_VERSION: Final = 1
FILE_HEADER_BYTES: Final = 48
KIND_LOG: Final = b"log"
"""The kind of a segment that the log was written to."""
KIND_COMPACTED: Final = b"cold"
"""The kind of a segment that compaction wrote; unused until a checkpoint lists it."""
Buffer = bytes | bytearray | memoryview

_HEAD: Final = struct.Struct("<2sBBIQ")
_PLACE: Final = struct.Struct("<QQ")
_CRC: Final = struct.Struct("<I")
_FILE_HEADER: Final = struct.Struct("<8sII16sQI")
_PAD: Final = bytes(FILE_HEADER_BYTES - _FILE_HEADER.size - 4)


class RecordKind(IntEnum):
    """The kinds of records."""

    MESSAGES = 1
    SETTLED = 2
    DELIVERED = 3
    DEFINITION = 4
    DROPPED = 5
    START = 6
    INDEX = 7
    SEALED = 8
    END_OF_GROUP = 9


class Flags(IntFlag):
    """The flags of a record.

    Records of a group count only if the group is complete: its first and last one are marked. Each
    record that compaction wrote is marked, so that its file is recognized even if the header is
    damaged.
    """

    NONE = 0
    GROUPED = 1
    FIRST = 2
    LAST = 4
    MOVED = 8


class Record:
    """One record at its offset in the file; `body` is a view of what was read."""

    __slots__ = ("body", "flags", "kind", "offset", "sequence")

    def __init__(self, offset: int, kind: int, flags: int, sequence: int, body: memoryview) -> None:
        self.offset = offset
        self.kind = kind
        self.flags = flags
        self.sequence = sequence
        self.body = body

    @property
    def end(self) -> int:
        return self.offset + HEAD_BYTES + len(self.body)


def seal(
    segment: int, offset: int, kind: int, flags: int, sequence: int, buffers: Sequence[Buffer]
) -> list[Buffer]:
    """Returns a record with this body, as pieces to be written at `offset`."""
    length = HEAD_BYTES + sum(map(len, buffers))
    head = _HEAD.pack(MAGIC, kind, flags, length, sequence)
    crc = zlib.crc32(head, _seed(segment, offset))
    for buffer in buffers:
        crc = zlib.crc32(buffer, crc)
    return [head + _CRC.pack(crc), *buffers]


def _seed(segment: int, offset: int) -> int:
    return zlib.crc32(_PLACE.pack(segment, offset))


def read_record(segment: int, data: memoryview, at: int, base: int = 0) -> Record | None:
    """Returns the record at `data[at:]`, where `data` begins `base` bytes into the file; None if
    there is no valid one."""
    record = unchecked_record(data, at, base)
    if record is None:
        return None
    (crc,) = _CRC.unpack_from(data, at + 16)
    found = zlib.crc32(data[at : at + 16], _seed(segment, base + at))
    if zlib.crc32(record.body, found) != crc:
        return None
    return record


def checked_body(
    segment: int, offset: int, kind: RecordKind, data: memoryview
) -> memoryview | None:
    """Returns the body of the record of this kind that `data` is, as it was read at `offset`; None
    if it is none or damaged. Quicker than `read_record`."""
    if len(data) < HEAD_BYTES:
        return None
    magic, found, _, length, _ = _HEAD.unpack_from(data)
    if magic != MAGIC or length != len(data) or found != kind:
        return None
    body = data[HEAD_BYTES:]
    crc = zlib.crc32(body, zlib.crc32(data[:16], _seed(segment, offset)))
    return body if _CRC.unpack_from(data, 16)[0] == crc else None


def sequence_of(data: memoryview) -> int:
    """Returns the sequence number in a record's head."""
    return int(_HEAD.unpack_from(data)[4])


def unchecked_record(data: memoryview, at: int, base: int = 0) -> Record | None:
    """Returns the record at `data[at:]` without checking its CRC; None if its head is not valid."""
    if at + HEAD_BYTES > len(data):
        return None
    magic, kind, flags, length, sequence = _HEAD.unpack_from(data, at)
    if magic != MAGIC or not HEAD_BYTES <= length <= len(data) - at:
        return None
    return Record(base + at, kind, flags, sequence, data[at + HEAD_BYTES : at + length])


@dataclass(frozen=True, slots=True)
class Gap:
    """Damaged bytes: they are no record, but a record follows them."""

    start: int
    end: int


def scan(segment: int, data: memoryview) -> Iterator[Record | Gap]:
    """Yields all records of a file and the gaps between them, without the header.

    Bytes after the last valid record are ignored: an interrupted write, or the zeros of allocated
    space.
    """
    at = FILE_HEADER_BYTES
    whole = bytes(data[:0])
    while at < len(data):
        record = read_record(segment, data, at)
        if record is None:
            whole = whole or bytes(data)
            record = _next(segment, data, whole, at + 1)
            if record is None:
                return
            yield Gap(at, record.offset)
        yield record
        at = record.end


def counting(found: Iterable[Record | Gap]) -> Iterator[Record]:
    """Yields the records that count: those of a group only if it is complete."""
    group: list[Record] | None = None
    for record in found:
        if isinstance(record, Gap):
            group = None
        elif not record.flags & Flags.GROUPED:
            group = None
            yield record
        else:
            if record.flags & Flags.FIRST:
                group = []
            if group is None:
                continue  # Its beginning was lost.
            group.append(record)
            if record.flags & Flags.LAST:
                yield from group
                group = None


def _next(segment: int, data: memoryview, whole: bytes, at: int) -> Record | None:
    while (at := whole.find(MAGIC, at)) >= 0:
        record = read_record(segment, data, at)
        if record is not None:
            return record
        at += 1
    return None


@dataclass(frozen=True, slots=True)
class FileHeader:
    """The first bytes of every file of a store."""

    kind: bytes
    store_id: bytes
    number: int

    def encode(self) -> bytes:
        raw = _FILE_HEADER.pack(
            self.kind.ljust(8), FORMAT_VERSION, FILE_HEADER_BYTES, self.store_id, self.number, 0
        )
        return raw + _PAD + _CRC.pack(zlib.crc32(raw + _PAD))


class DamagedHeader(ConfigError):
    """A file's header is damaged."""


def read_file_header(name: str, data: bytes | memoryview) -> FileHeader:
    """Returns the header of a file. Raises `DamagedHeader`, or `ConfigError` for the format of a
    newer Warren."""
    raw = bytes(data[:FILE_HEADER_BYTES])
    if len(raw) < FILE_HEADER_BYTES or zlib.crc32(raw[:-4]) != _CRC.unpack(raw[-4:])[0]:
        raise DamagedHeader(f"{name}: the file's header is damaged")
    kind, version, _, store_id, number, _ = _FILE_HEADER.unpack_from(raw)
    if version > FORMAT_VERSION:
        raise ConfigError(
            f"{name}: format version {version}, this Warren knows up to {FORMAT_VERSION}; "
            "start the newer one that wrote it"
        )
    return FileHeader(kind.rstrip(), store_id, number)
