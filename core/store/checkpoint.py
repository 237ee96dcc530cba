"""Checkpoints: everything that the log says up to the beginning of one segment, in a file.

A checkpoint is taken in slices while the broker works, so it may contain some later changes as
well. That is harmless: the records from its segment on are applied again, and each states a value,
not a difference. The file is written under a temporary name, synced and renamed. The last two are
kept, so that one damaged file does not cost the definitions.
"""

from __future__ import annotations

import logging
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from ..errors import ConfigError
from .disk import FULL, Disk
from .message_format import numbers, octets
from .record import FILE_HEADER_BYTES, Buffer, DamagedHeader, FileHeader, read_file_header
from .record_index import RecordIndex
from .salvage import salvage_file
from .segment import Segment, segment_name
from .segment_part import SegmentPart, Snapshot

logger = logging.getLogger(__name__)

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

KIND: Final = b"state"
SUFFIX: Final = ".state"
_TOP: Final = struct.Struct("<QQ?")
_COUNT: Final = struct.Struct("<I")
_KEY: Final = struct.Struct("<HI")
_MARK: Final = struct.Struct("<QQ")
_PRIORITY_MARK: Final = struct.Struct("<QBQ")
_SEGMENT: Final = struct.Struct("<QQQBI")
_UNCLEAN, _FENCED, _INDEXED = 1, 2, 4
_PART: Final = struct.Struct("<QIQIQQBQII")
_PARTIAL: Final = struct.Struct("<II")
_TAIL: Final = struct.Struct("<QI")
ITEMS_AT_ONCE: Final = 500
RECORDS_AT_ONCE: Final = 256
"""Records of a part that one slice copies: a record takes up to 20 us."""


@dataclass(slots=True)
class CheckpointState:
    """The state of the store at the beginning of `segment`.

    `clean` is whether the process that wrote it stopped in order, `sequence` a number above all
    that were reserved, `checkpoint` the number of the checkpoint, 0 for none.
    """

    store_id: bytes = b""
    segment: int = 1
    sequence: int = 0
    clean: bool = False
    checkpoint: int = 0
    definitions: dict[bytes, bytes] = field(default_factory=dict)
    marks: dict[int, int] = field(default_factory=dict)
    segments: dict[int, Segment] = field(default_factory=dict)
    priority_marks: dict[tuple[int, int], int] = field(default_factory=dict)
    """Marks by queue id and priority; those in `marks` are for all priorities."""


def checkpoint_name(number: int) -> str:
    return f"{number:012d}{SUFFIX}"


def encode(
    number: int, state: CheckpointState, listed: set[int], *, first_own: int, clean: bool
) -> Iterator[bytes]:
    """Yields the body of a checkpoint in pieces, with a bounded amount of work for each; adds the
    segments with unsettled messages to `listed`.

    Segments from `first_own` on were written by this process: unless it stops in order, messages in
    them that consumers may have got are redelivered.
    """
    yield _TOP.pack(number, state.sequence, clean)
    yield from _encode_mapping(state.definitions, _encode_definition)
    yield from _encode_mapping(state.marks, _MARK.pack)
    for segment in list(state.segments.values()):
        if segment.number < number and not segment.is_dead:
            listed.add(segment.number)
            unclean = segment.unclean or (not clean and segment.number >= first_own)
            yield from _encode_segment(segment, unclean=unclean)
    yield _SEGMENT.pack(0, 0, 0, 0, 0)
    yield from _encode_mapping(
        state.priority_marks, lambda key, mark: _PRIORITY_MARK.pack(*key, mark)
    )


def _encode_mapping(
    mapping: Mapping[_Key, _Value], encode_item: Callable[[_Key, _Value], bytes]
) -> Iterator[bytes]:
    """Yields the number of items, then the items that stay in the mapping throughout. Those added
    or removed meanwhile are in the log as well."""
    keys, at, count = list(mapping), 0, 0
    buffers: list[bytes] = []
    while at < len(keys):
        some = [key for key in keys[at : at + ITEMS_AT_ONCE] if key in mapping]
        buffers.append(b"".join([encode_item(key, mapping[key]) for key in some]))
        count += len(some)
        at += ITEMS_AT_ONCE
        yield b""
    yield _COUNT.pack(count)
    yield from buffers


def _encode_definition(key: bytes, value: bytes) -> bytes:
    return _KEY.pack(len(key), len(value)) + key + value


def _encode_segment(segment: Segment, *, unclean: bool) -> Iterator[bytes]:
    count = 0
    buffers: list[bytes] = []
    for part in list(segment.parts.values()):
        if part.unsettled:
            count += 1
            for buffer in _encode_part(part):
                buffers.append(buffer)
                yield b""
            if segment.keeps_indexes:
                index = part.index or RecordIndex()
                buffers += _COUNT.pack(len(index.numbers)), octets(index.numbers)
    flags = _UNCLEAN * unclean | _FENCED * segment.is_fenced | _INDEXED * segment.keeps_indexes
    yield _SEGMENT.pack(segment.number, segment.end, segment.total, flags, count)
    yield from buffers


def _encode_part(part: SegmentPart) -> Iterator[bytes]:
    """Yields a part in a consistent state, though it is copied in slices."""
    snapshot = part.snapshot = Snapshot(part.front)
    snapshot.take(part, RECORDS_AT_ONCE)
    while snapshot.taken < part.records:
        yield b""
        if part.snapshot is not snapshot:  # A range was discarded: begin again.
            snapshot = part.snapshot = Snapshot(part.front)
        snapshot.take(part, RECORDS_AT_ONCE)
    part.snapshot = None
    dead, partial = snapshot.dead, snapshot.partial
    head = _PART.pack(
        part.queue_id, part.records, part.unsettled + snapshot.settled_since, snapshot.front,
        part.first, part.last, part.special, part.next_offset, len(dead), len(partial),
    )  # fmt: skip
    yield head + octets(dead) + _encode_partial(partial[:RECORDS_AT_ONCE])
    for first in range(RECORDS_AT_ONCE, len(partial), RECORDS_AT_ONCE):
        yield _encode_partial(partial[first : first + RECORDS_AT_ONCE])


def _encode_partial(records: list[tuple[int, bytes]]) -> bytes:
    return b"".join([_PARTIAL.pack(ordinal, len(bits)) + bits for ordinal, bits in records])


def write(disk: Disk, store_id: bytes, number: int, buffers: Sequence[Buffer]) -> int:
    """Writes a checkpoint and returns its size in bytes. Raises `OSError`."""
    name = checkpoint_name(number)
    temporary = name + ".new"
    if temporary in disk.names():
        disk.remove(temporary)
    size = sum(map(len, buffers))
    crc = 0
    for buffer in buffers:
        crc = zlib.crc32(buffer, crc)
    header = FileHeader(KIND, store_id, number).encode()
    try:
        _write(disk, temporary, [header, *buffers, _TAIL.pack(size, crc)])
    except OSError as error:
        if error.errno in FULL and temporary in disk.names():
            disk.remove(temporary)
        raise
    disk.rename(temporary, name)
    disk.sync_directory()
    return FILE_HEADER_BYTES + size + _TAIL.size


def _write(disk: Disk, name: str, buffers: Sequence[Buffer]) -> None:
    file = disk.create(name)
    try:
        file.write(0, buffers)
        file.sync()
    finally:
        file.close()


def remove_unfinished(disk: Disk) -> None:
    """Removes the files of checkpoints that a crash interrupted. Raises `OSError`."""
    for name in disk.names():
        if name.endswith(SUFFIX + ".new"):
            disk.remove(name)


def read_newest(disk: Disk) -> CheckpointState | None:
    """Returns the newest valid checkpoint; None if there is none and the log is complete.

    Raises `ConfigError` if there is none and the log is not complete, or for a newer format.
    """
    names = sorted((name for name in disk.names() if name.endswith(SUFFIX)), reverse=True)
    for name in names:
        data = salvage_file(disk, name)[0]
        try:
            header = read_file_header(name, data)
            return replace(decode(data), store_id=header.store_id)
        except (ValueError, DamagedHeader) as error:
            logger.error("%s is damaged (%s); the previous checkpoint is used", name, error)
    first = _first_missing(disk)
    if first is not None:
        raise ConfigError(
            f"{', '.join(names) or 'checkpoint'}: damaged or missing, and {first}, which could "
            "replace it, is missing; nothing was changed. Restore the data directory from a copy."
        )
    return None


def _first_missing(disk: Disk) -> str | None:
    """Returns the name of the first segment that was removed; None if none was."""
    there = set(disk.names())
    logs = sum(name.endswith(".log") for name in there)
    for number in range(1, logs + 1):
        if segment_name(number) not in there:
            return segment_name(number)
    return None


def decode(data: bytes) -> CheckpointState:
    """Returns the state in a checkpoint's file. Raises `ValueError` if it is damaged."""
    body = memoryview(data)[FILE_HEADER_BYTES : -_TAIL.size]
    if len(data) < FILE_HEADER_BYTES + _TAIL.size:
        raise ValueError("it is truncated")
    size, crc = _TAIL.unpack(data[-_TAIL.size :])
    if size != len(body) or zlib.crc32(body) != crc:
        raise ValueError("its checksum is wrong")
    number, sequence, clean = _TOP.unpack_from(body)
    state = CheckpointState(b"", number, sequence, clean, number)
    at = _decode_definitions(body, _TOP.size, state.definitions)
    (marks,) = _COUNT.unpack_from(body, at)
    at += _COUNT.size
    for _ in range(marks):
        queue_id, mark = _MARK.unpack_from(body, at)
        state.marks[queue_id] = mark
        at += _MARK.size
    while True:
        segment_number, end, total, flags, parts = _SEGMENT.unpack_from(body, at)
        at += _SEGMENT.size
        if not segment_number:
            _decode_priority_marks(body, at, state.priority_marks)
            return state
        segment = state.segments[segment_number] = Segment(segment_number)
        segment.end, segment.sealed = end, True
        segment.unclean, segment.is_fenced = bool(flags & _UNCLEAN), bool(flags & _FENCED)
        segment.keeps_indexes = bool(flags & _INDEXED)
        for _ in range(parts):
            at = _decode_part(body, at, segment)
        segment.total = total


def _decode_priority_marks(body: memoryview, at: int, into: dict[tuple[int, int], int]) -> None:
    """Reads the marks by priority, which checkpoints of earlier versions do not have."""
    if at < len(body):
        for queue_id, priority, mark in _PRIORITY_MARK.iter_unpack(body[at + _COUNT.size :]):
            into[queue_id, priority] = mark


def _decode_definitions(body: memoryview, at: int, into: dict[bytes, bytes]) -> int:
    (count,) = _COUNT.unpack_from(body, at)
    at += _COUNT.size
    for _ in range(count):
        key_bytes, value_bytes = _KEY.unpack_from(body, at)
        at += _KEY.size
        middle = at + key_bytes
        into[bytes(body[at:middle])] = bytes(body[middle : middle + value_bytes])
        at = middle + value_bytes
    return at


def _decode_part(body: memoryview, at: int, segment: Segment) -> int:
    (
        queue_id, records, unsettled, front, first, last, special, next_offset, dead, partial,
    ) = _PART.unpack_from(body, at)  # fmt: skip
    at += _PART.size
    part = segment.part(queue_id)
    part.records, part.unsettled, part.front = records, unsettled, front
    part.first, part.last, part.special = first, last, special
    part.next_offset = next_offset
    segment.grew(unsettled)
    part.dead = set(numbers("I", body[at : at + 4 * dead]))
    at += 4 * dead
    for _ in range(partial):
        ordinal, count = _PARTIAL.unpack_from(body, at)
        at += _PARTIAL.size
        part.partial[ordinal] = bytes(body[at : at + count])
        at += count
    if segment.keeps_indexes:
        (count,) = _COUNT.unpack_from(body, at)
        at += _COUNT.size
        part.index = RecordIndex(numbers("Q", body[at : at + 8 * count]))
        at += 8 * count
    return at
