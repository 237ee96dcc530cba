"""Chunks: the records of a stream for readers outside of this process (docs/streams.md).

A chunk is a head of 48 bytes and one record. The record is as it lies in the log, if the stream has
all messages of it; otherwise it is a copy with the stream's messages only, since the others belong
to queues that the reader may have no permission for.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Sequence
from enum import IntFlag
from itertools import accumulate
from operator import add, sub
from typing import Final, NamedTuple

from ..message.batch import Batch, SingleMessage
from ..message.framed_batch import ScatteredBatch, StridedBatch
from ..message.queue_entry import QueueEntry
from .codec import MessageRecord, arrival_of, has_all_of
from .encoder import encode_messages
from .record import HEAD_BYTES as RECORD_HEAD_BYTES
from .record import Buffer, Flags, RecordKind, checked_body, seal, sequence_of

MAGIC: Final = b"WSC1"
_HEAD: Final = struct.Struct("<4sIQIIQQQ")
HEAD_BYTES: Final = _HEAD.size


class ChunkFlags(IntFlag):
    """The flags of a chunk. The CRC of a copied record is that of segment 0, offset 0."""

    NONE = 0
    COPIED = 1


class StoredRecord(NamedTuple):
    """The location of a record, and its messages of a stream: `messages` of them, from offset
    `first` on. `size` is 0 if it is lost."""

    segment: int
    offset: int
    size: int
    first: int
    messages: int


class _OnlyQueue(NamedTuple):
    """The queue of a copied record. Implements `QueueIdentity`."""

    id: int
    durable: bool = True
    has_consumers: bool = False


def record_chunk(stream_id: int, stored: StoredRecord, data: memoryview) -> list[Buffer] | None:
    """Returns the chunk of a record that was read, in pieces; None if the record is damaged."""
    segment, offset, size, first, messages = stored
    body = checked_body(segment, offset, RecordKind.MESSAGES, data)
    if body is None:
        return None
    if has_all_of(body, messages):
        flags = ChunkFlags.NONE
        pieces: list[Buffer] = [data]
    else:
        copy = _copied(stream_id, stored, MessageRecord(body, sequence_of(data)))
        if copy is None:
            return None
        flags, pieces = ChunkFlags.COPIED, copy
        size = sum(map(len, copy))
    return [_HEAD.pack(MAGIC, flags, first, messages, size, stream_id, segment, offset), *pieces]


def checksum(chunk: Sequence[Buffer], before: int) -> int:
    """Returns a checksum of a chunk, continued from that of those before it: of its head and that
    of its record, which has the checksum of all the rest."""
    return zlib.crc32(memoryview(chunk[1])[:RECORD_HEAD_BYTES], zlib.crc32(chunk[0], before))


def arrived_ms(chunk: Sequence[Buffer]) -> int:
    """Returns when the messages of a chunk arrived, in milliseconds since 1970."""
    return arrival_of(memoryview(b"".join(chunk))[HEAD_BYTES + RECORD_HEAD_BYTES :])


def _copied(stream_id: int, stored: StoredRecord, decoded: MessageRecord) -> list[Buffer] | None:
    """Returns a record with the stream's messages only; None if it has others than its index
    says."""
    share = decoded.of(stream_id)
    if share is None:
        return None
    batch = decoded.batch(0)
    selection = range(batch.count) if share[0] is None else share[0]
    if len(selection) != stored.messages:
        return None
    chosen = _selected(batch, selection)
    body = encode_messages(
        chosen,
        [(_OnlyQueue(stream_id), QueueEntry(chosen, None))],
        decoded.arrived_wall_ms,
        offsets=((stream_id, stored.first),),
    )
    return seal(0, 0, RecordKind.MESSAGES, Flags.NONE, chosen.sequence, body)


def _selected(batch: Batch, selection: Sequence[int]) -> Batch:
    """Returns a batch of the messages at these indices; their numbers are adjacent in it. A single
    message is without the keys that are not delivered."""
    sequence, arrived_ms = batch.sequence + selection[0], batch.arrived_ms
    if isinstance(batch, SingleMessage):
        return SingleMessage(
            batch.envelope(0), batch.properties(0), batch.body(0), sequence, batch.attributes,
            arrived_ms,
        )  # fmt: skip
    if isinstance(batch, StridedBatch):
        starts = [batch.first + index * batch.stride for index in selection]
        data = b"".join([batch.data[start : start + batch.stride] for start in starts])
        layout = (0, batch.stride, batch.content_at, batch.body_at)
        return StridedBatch(data, sequence, len(starts), batch.attributes, arrived_ms, layout)
    assert isinstance(batch, ScatteredBatch)
    starts, contents, ends = (
        [offsets[index] for index in selection]
        for offsets in (batch.starts, batch.contents, batch.ends)
    )
    data = b"".join(map(batch.data.__getitem__, map(slice, starts, ends)))
    new_ends = array("I", accumulate(map(sub, ends, starts)))
    new_starts = array("I", (0, *new_ends[:-1]))
    new_contents = array("I", map(add, new_starts, map(sub, contents, starts)))
    return ScatteredBatch(
        data, sequence, batch.attributes, arrived_ms, new_starts, new_contents, new_ends
    )
