"""Finds records and messages in chunks, the bytes of the log as the server sends them.

A chunk is a head and a record of the log (core/store/record.py), whose body has metadata, shares, a
layout and the bytes of messages (core/store/codec.py). All messages of a record are the stream's.
Nothing is copied here: records and messages are positions in the bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

import numpy as np

from .errors import DamagedChunk
from .octets import Octets, Positions

HEAD: Final = Struct("<4sIQIIQQQ")
"""Magic, flags, offset of the first message, messages, length of the record, stream, and where in
which segment the record lies."""
MAGIC: Final = b"WSC1"
COPIED: Final = 1
"""The flag of a record that was made for this answer: it lies at the beginning of segment 0."""
RECORD: Final = Struct("<2sBBIQI")
RECORD_MAGIC: Final = b"\xa5W"
MESSAGES: Final = 1
PLACE: Final = Struct("<QQ")
META_BYTES: Final = 23
_STRIDED, SCATTERED, _WHOLE = 0, 1, 2
NUMBERED: Final = 0x40


class Records(NamedTuple):
    """Records by the positions of their bodies and ends, with the offset of each one's first
    message and the number of messages."""

    bodies: Positions
    ends: Positions
    offsets: Positions
    counts: Positions


class ChunkMessages(NamedTuple):
    """Messages in the order of their offsets.

    `envelopes` are the positions of exchange and routing key, two short strings, and `properties`
    those of property lists. Messages that are known to have the same ones may have the same
    positions.
    """

    offsets: Positions
    arrived_ms: Positions
    envelopes: Positions
    properties: Positions
    bodies: Positions
    ends: Positions

    def between(self, start: int, end: int) -> ChunkMessages:
        """Returns the messages at offsets from `start` to before `end`."""
        first, last = np.searchsorted(self.offsets, (start, end))
        return ChunkMessages(*(column[first:last] for column in self))


def read_chunks(data: bytes) -> Records:
    """Returns the records of chunks. Raises `DamagedChunk` for bytes that can't be chunks, and
    for a checksum that is wrong."""
    found = list(_chunks(data))
    return Records(*np.array(found, np.int64).reshape(-1, 4).T)


def _chunks(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    view = memoryview(data)
    at = 0
    while at < len(data):
        start = at + HEAD.size
        if start + RECORD.size > len(data):
            raise DamagedChunk(f"chunk at {at} of {len(data)} bytes: its head is cut off")
        magic, flags, offset, count, length, _, segment, place = HEAD.unpack_from(data, at)
        at = start + length
        if magic != MAGIC:
            raise DamagedChunk(f"chunk at {start - HEAD.size} begins with {magic!r}, not {MAGIC!r}")
        _check(view[start:at], length, (0, 0) if flags & COPIED else (segment, place))
        yield start + RECORD.size, at, offset, count


def _check(record: memoryview, length: int, place: tuple[int, int]) -> None:
    magic, kind, _, record_length, _, crc = RECORD.unpack_from(record)
    where = f"record at {place[1]} of segment {place[0]}"
    if (magic, kind) != (RECORD_MAGIC, MESSAGES) or not len(record) == length == record_length:
        raise DamagedChunk(f"{where} is no record of messages of {length} bytes")
    found = zlib.crc32(record[: RECORD.size - 4], zlib.crc32(PLACE.pack(*place)))
    if zlib.crc32(record[RECORD.size :], found) != crc:
        raise DamagedChunk(f"{where} is damaged: its checksum is wrong; see 'warren repair'")


def locate(octets: Octets, records: Records) -> ChunkMessages:
    """Returns the messages of records. Raises `DamagedChunk` where counts don't agree."""
    counts = records.counts
    if not np.array_equal(octets.integer("<u4", records.bodies + 12), counts):
        raise DamagedChunk("a chunk has another number of messages than its record")
    befores = np.cumsum(counts) - counts
    total = int(counts.sum())
    arrived = octets.integer("<u8", records.bodies + 4)
    offsets = np.repeat(records.offsets - befores, counts) + np.arange(total)
    found = ChunkMessages(offsets, np.repeat(arrived, counts), *np.empty((4, total), np.int64))
    kinds = octets.octet(records.bodies + 16) & 15
    for kind, find in ((_STRIDED, _strided), (SCATTERED, _scattered), (_WHOLE, _whole)):
        chosen = np.flatnonzero(kinds == kind)
        if len(chosen):
            part = Records(*(column[chosen] for column in records))
            places = ranges(befores[chosen], part.counts)
            for column, values in zip(found[2:], find(octets, part), strict=True):
                column[places] = values
    return found


def ranges(starts: Positions, counts: Positions) -> Positions:
    """Returns `counts` consecutive numbers from each of `starts` on."""
    befores = np.cumsum(counts) - counts
    return np.repeat(starts - befores, counts) + np.arange(counts.sum())


Places = tuple[Positions, Positions, Positions, Positions]


def _strided(octets: Octets, records: Records) -> Places:
    """Returns the messages of records, each with the envelope and the properties of its record's
    first one."""
    data, counts = _data(octets, records), records.counts
    strides, contents = octets.integer("<u4", data - 12), data + octets.integer("<u4", data - 8)
    sizes = octets.integer(">u8", contents + 11)
    numbers = ranges(np.ones_like(counts), counts)
    ends = np.repeat(data - 1, counts) + numbers * np.repeat(strides, counts)
    envelopes, properties = np.repeat(data + 13, counts), np.repeat(contents + 19, counts)
    return envelopes, properties, ends - np.repeat(sizes, counts), ends


def _scattered(octets: Octets, records: Records) -> Places:
    data, counts = _data(octets, records), records.counts
    layouts = data - 4 - 12 * counts
    bases = np.repeat(data - octets.integer("<u4", layouts), counts)
    widths = np.repeat(4 * counts, counts)
    # Three arrays of a record, one behind the other: starts, contents and ends.
    at = 4 * ranges(np.zeros_like(counts), counts) + np.repeat(layouts + 4, counts)
    starts, contents, ends = (
        octets.integer("<u4", at + item * widths) + bases for item in range(3)
    )
    sizes = octets.integer(">u8", contents + 11)
    return starts + 13, contents + 19, ends - 1 - sizes, ends - 1


def _whole(octets: Octets, records: Records) -> Places:
    """Records of one message whose body is not in frames. Their layout lies behind the shares."""
    bodies = records.bodies
    at = bodies + META_BYTES + octets.octet(bodies + 18)
    shares = octets.integer("<u4", bodies + 19)
    for number in range(int(shares.max())):
        rows = np.flatnonzero(number < shares)
        queues, selected = octets.integer("<u4", at[rows]), octets.integer("<u4", at[rows] + 4)
        at[rows] += 8 + 8 * queues + 4 * selected
    numbered = np.flatnonzero(octets.octet(bodies + 16) & NUMBERED)
    at[numbered] += 4 + 16 * octets.integer("<u4", at[numbered])
    envelopes = at + 10
    properties = envelopes + octets.integer("<u2", at)
    return envelopes, properties, _data(octets, records), records.ends


def _data(octets: Octets, records: Records) -> Positions:
    """Returns where the bytes of messages begin."""
    return records.bodies + octets.integer("<u4", records.bodies)
