"""Records: what a segment file consists of.

A record is a head of 20 bytes (magic, kind, flags, length of the whole, sequence number, CRC) and
its body, all numbers little-endian. The CRC covers head and body and is seeded with the place,
segment and offset, so that a record which stands where it was not written is none.

A file begins with a header of the same protection (`FileHeader`): its kind, the format version, the
store's id and its number.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from ..errors import ConfigError

MAGIC = b"\xa5W"
HEAD_BYTES = 20
FORMAT_VERSION = 1
FILE_HEADER_BYTES = 48
COLD = b"cold"
"""The kind of file that a move made; nobody's until a checkpoint lists it."""
Buffer = bytes | bytearray | memoryview

_HEAD = struct.Struct("<2sBBIQ")
_PLACE = struct.Struct("<QQ")
_CRC = struct.Struct("<I")
_FILE_HEADER = struct.Struct("<8sII16sQI")
_PAD = bytes(FILE_HEADER_BYTES - _FILE_HEADER.size - 4)


class Kind(IntEnum):
    """What a record says."""

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
    """Records of a group count only if the group is whole: its first and last are marked.

    Copies that compaction made are marked one by one, so that a file whose header is damaged can
    still be told from a segment of the log.
    """

    NONE = 0
    GROUPED = 1
    FIRST = 2
    LAST = 4
    MOVED = 8


@dataclass(frozen=True, slots=True)
class Record:
    """One record at its place; `body` is a view of what was read."""

    offset: int
    kind: int
    flags: int
    sequence: int
    body: memoryview

    @property
    def end(self) -> int:
        return self.offset + HEAD_BYTES + len(self.body)


def seal(
    segment: int, offset: int, kind: int, flags: int, sequence: int, buffers: Sequence[Buffer]
) -> list[Buffer]:
    """The record with this body, as pieces to be written at `offset`."""
    length = HEAD_BYTES + sum(map(len, buffers))
    head = _HEAD.pack(MAGIC, kind, flags, length, sequence)
    crc = zlib.crc32(head, _seed(segment, offset))
    for buffer in buffers:
        crc = zlib.crc32(buffer, crc)
    return [head + _CRC.pack(crc), *buffers]


def _seed(segment: int, offset: int) -> int:
    return zlib.crc32(_PLACE.pack(segment, offset))


def read_record(segment: int, data: memoryview, at: int, base: int = 0) -> Record | None:
    """The record at `data[at:]`, which stands `base` bytes into the file; None if there is no
    whole and sound one."""
    record = claimed_record(data, at, base)
    if record is None:
        return None
    (crc,) = _CRC.unpack_from(data, at + 16)
    found = zlib.crc32(data[at : at + 16], _seed(segment, base + at))
    if zlib.crc32(record.body, found) != crc:
        return None
    return record


def claimed_record(data: memoryview, at: int, base: int = 0) -> Record | None:
    """What stands there as a record, though its checksum may be wrong; None if its head is not
    one."""
    if at + HEAD_BYTES > len(data):
        return None
    magic, kind, flags, length, sequence = _HEAD.unpack_from(data, at)
    if magic != MAGIC or not HEAD_BYTES <= length <= len(data) - at:
        return None
    return Record(base + at, kind, flags, sequence, data[at + HEAD_BYTES : at + length])


def length_of(head: bytes | memoryview) -> int:
    """How long the record says it is that begins so; 0 if no record does."""
    if len(head) < HEAD_BYTES or head[:2] != MAGIC:
        return 0
    return int(_HEAD.unpack_from(head)[3])


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that are no record though a record follows them: damage."""

    start: int
    end: int


def scan(segment: int, data: memoryview) -> Iterator[Record | Gap]:
    """All records of a file, its header left out, and the gaps between them.

    What stands behind the last sound record is given as nothing: a torn end, or the zeros of
    space that was taken in advance.
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
    """The records that count: those of a group only if it is whole."""
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
                continue  # its beginning was lost
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
    """A file's header is not what was written."""


def read_file_header(name: str, data: bytes | memoryview) -> FileHeader:
    """Raises `DamagedHeader`, or `ConfigError` for the format of a newer Warren."""
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
