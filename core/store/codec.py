"""The body of a message record: a batch and which queues hold which of its messages.

A meta part of its own length stands before the bytes of the messages, which are written as they
came. The queues of one share follow each other; a queue number's lowest bit says that it had
consumers, so what they may have got is known after a crash. For queues that number their messages,
streams, the number of the first is there too: a record that is lost must not change others'.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from ..message.batch import Batch, QueueEntry, ScatteredBatch, SingleMessage, StridedBatch
from ..wire.properties import RANKED, TIMED, intern_attributes
from .port import QueueIdentity
from .record import Buffer

_META = struct.Struct("<IQIBBBI")
_SHARE = struct.Struct("<II")
_STRIDED = struct.Struct("<III")
_WHOLE = struct.Struct("<HII")
_KEY = struct.Struct("<I")
_STRIDED_KIND, _SCATTERED_KIND, _WHOLE_KIND = 0, 1, 2
_SWAPPED = sys.byteorder == "big"
_REDELIVERED, _EXPIRING, _NUMBERED = 1, 2, 4
_COUNT = struct.Struct("<I")


Offsets = Sequence[tuple[int, int]]
"""Queues by their ids, each with the number of the first of its messages in a record."""


@dataclass(frozen=True, slots=True)
class Share:
    """Some queues by their ids and which messages they hold, None for all."""

    queues: array[int]
    """Twice the id, plus 1 if the queue was read when the record was written."""
    selection: array[int] | None


SHARE_BYTES = 250
"""About what a share takes once it is decoded."""


class MessageRecord:
    """A record of messages that was read and checked. Its shares are decoded when they are first
    asked for: who knows from an index which messages are a queue's need not look through those of
    thousands of others."""

    __slots__ = (
        "_by_queue", "_kind", "_offsets", "_shares", "body", "count", "sequence", "size_bytes",
    )  # fmt: skip

    def __init__(self, body: memoryview, sequence: int) -> None:
        self.body = body
        self._shares: list[Share] | None = None
        self._by_queue: dict[int, tuple[array[int] | None, bool]] = {}
        self._offsets: list[array[int]] = []
        _, _, self.count, self._kind, _, _, share_count = _META.unpack_from(body)
        self.sequence = sequence
        self.size_bytes = len(body) + SHARE_BYTES * share_count

    @property
    def redelivered(self) -> bool:
        return bool(self._kind >> 4 & _REDELIVERED)

    @property
    def arrived_wall_ms(self) -> int:
        return int(_META.unpack_from(self.body)[1])

    @property
    def shares(self) -> list[Share]:
        if self._shares is None:
            self._shares = read_shares(self.body)[2]
        return self._shares

    def of(self, queue_id: int) -> tuple[array[int] | None, bool] | None:
        """A queue's selection and whether it was read; None if it has no share.

        Two threads may ask: the table is noted when it is complete.
        """
        found = self._by_queue
        if not found:
            found = {
                held >> 1: (share.selection, bool(held & 1))
                for share in self.shares
                for held in share.queues
            }
            self._by_queue = found
        return found.get(queue_id)

    def between(self, first: int, last: int) -> array[int] | None:
        """The selection of all messages numbered `first` to `last`."""
        count = last - first + 1
        start = first - self.sequence
        return None if count == self.count else array("I", range(start, start + count))

    def batch(self, monotonic_offset_ms: int) -> Batch:
        """Its messages; the offset makes the time of day monotonic time."""
        body = self.body
        size, wall_ms, count, kind, priority, expiration_bytes, _ = _META.unpack_from(body)
        at: int = _META.size
        text = bytes(body[at : at + expiration_bytes]).decode("latin-1")
        layout = body[self._layout_at(at + expiration_bytes, size) : size]
        data, numbering = bytes(body[size:]), (self.sequence, count, wall_ms)
        if kind & 15 == _SCATTERED_KIND:
            batch: Batch = self._scattered(layout, data, wall_ms)
        else:
            batch = _read_batch(kind & 15, layout, data, numbering)
        expiration = text if kind >> 4 & _EXPIRING else None
        batch.attributes = intern_attributes(True, priority, expiration, False)
        batch.arrived_ms = wall_ms + monotonic_offset_ms
        return batch

    def _scattered(self, layout: memoryview, data: bytes, arrived_ms: int) -> ScatteredBatch:
        """Its offsets are kept: queues with a few messages each read the same record often."""
        if not self._offsets:
            self._offsets = _read_offsets(layout, self.count)
        attributes = intern_attributes(True, 0, None, False)
        return ScatteredBatch(data, self.sequence, attributes, arrived_ms, *self._offsets)

    def _layout_at(self, at: int, size: int) -> int:
        """Where the layout begins: its size is known where there may be many shares."""
        kind = self._kind
        if kind & 15 == _STRIDED_KIND:
            return size - _STRIDED.size
        if kind & 15 == _SCATTERED_KIND:
            return size - 4 - 12 * int(self.count)
        for share in self.shares:
            selected = 0 if share.selection is None else len(share.selection)
            at += _SHARE.size + 8 * len(share.queues) + 4 * selected
        if kind >> 4 & _NUMBERED:
            at += _COUNT.size + 16 * int(_COUNT.unpack_from(self.body, at)[0])
        return at


@dataclass(frozen=True, slots=True)
class Messages:
    """A decoded record."""

    batch: Batch
    record: MessageRecord

    @property
    def shares(self) -> list[Share]:
        return self.record.shares

    @property
    def redelivered(self) -> bool:
        return self.record.redelivered

    def of(self, queue_id: int) -> tuple[array[int] | None, bool] | None:
        return self.record.of(queue_id)


def numbers(typecode: str, raw: bytes | memoryview) -> array[int]:
    """Little-endian numbers as an array."""
    found = array(typecode)
    found.frombytes(raw)
    if _SWAPPED:
        found.byteswap()
    return found


def octets(values: array[int]) -> bytes:
    """An array as little-endian numbers."""
    if _SWAPPED:
        values = array(values.typecode, values)
        values.byteswap()
    return values.tobytes()


def encode_messages(
    batch: Batch,
    entries: Sequence[tuple[QueueIdentity, QueueEntry]],
    arrived_wall_ms: int,
    *,
    redelivered: bool = False,
    offsets: Offsets = (),
) -> list[Buffer]:
    """The record's body in pieces; the messages' bytes are not copied."""
    attributes = batch.attributes
    expiration = (attributes.expiration or "").encode()
    kind, layout, data = _layout(batch)
    shares = _shares(entries)
    share_count = len(shares) // 2
    flags = (_REDELIVERED if redelivered else 0) | (
        _EXPIRING if attributes.expiration is not None else 0
    )
    if offsets:
        flags |= _NUMBERED
        found = array("Q", [number for pair in offsets for number in pair])
        shares += (_COUNT.pack(len(offsets)), octets(found))
    size = _META.size + len(expiration) + len(layout) + sum(map(len, shares))
    meta = _META.pack(
        size, arrived_wall_ms, batch.count, kind | flags << 4, attributes.priority, len(expiration),
        share_count,
    )  # fmt: skip
    return [b"".join((meta, expiration, *shares, layout)), data]


def _shares(entries: Sequence[tuple[QueueIdentity, QueueEntry]]) -> list[bytes]:
    """Two pieces a share; runs of one share have the same selection, and stand together."""
    parts: list[bytes] = []
    at = 0
    while at < len(entries):
        selection = entries[at][1].selection
        queues = array("Q")
        while at < len(entries) and entries[at][1].selection is selection:
            queue = entries[at][0]
            queues.append(queue.id << 1 | queue.has_consumers)
            at += 1
        chosen = b"" if selection is None else octets(array("I", selection))
        parts += (_SHARE.pack(len(queues), len(chosen) // 4), octets(queues) + chosen)
    return parts


def _layout(batch: Batch) -> tuple[int, bytes, Buffer]:
    data: Buffer = batch.data
    if isinstance(batch, StridedBatch):
        layout = _STRIDED.pack(batch.stride, batch.content_at, batch.body_at)
        end = batch.first + batch.stride * batch.count
        if batch.first or end < len(data):
            data = memoryview(data)[batch.first : end]
        return _STRIDED_KIND, layout, data
    if isinstance(batch, ScatteredBatch):
        base, end = batch.starts[0], batch.ends[-1]
        arrays = (batch.starts, batch.contents, batch.ends)
        layout = base.to_bytes(4, "little") + b"".join(map(octets, arrays))
        if base or end < len(data):
            data = memoryview(data)[base:end]
        return _SCATTERED_KIND, layout, data
    assert isinstance(batch, SingleMessage)
    envelope, properties = batch.envelope(0), batch.properties(0)
    blind = b"".join(_KEY.pack(len(key)) + key for key in map(str.encode, batch.bcc_keys))
    layout = _WHOLE.pack(len(envelope), len(properties), len(blind))
    return _WHOLE_KIND, b"".join((layout, envelope, properties, blind)), data


def read_shares(body: memoryview) -> tuple[int, int, list[Share]]:
    """Of a record: how many messages, how special they are, and whose they are."""
    _, _, count, kind, priority, expiration_bytes, share_count = _META.unpack_from(body)
    at = _META.size + expiration_bytes
    shares = []
    for _ in range(share_count):
        share, at = _read_share(body, at)
        shares.append(share)
    special = TIMED * bool(kind >> 4 & _EXPIRING) | RANKED * bool(priority)
    return count, special, shares


def read_offsets(body: memoryview) -> Offsets:
    """Of a record: what the queues number that do so."""
    _, _, _, kind, _, expiration_bytes, share_count = _META.unpack_from(body)
    if not kind >> 4 & _NUMBERED:
        return ()
    at = _META.size + expiration_bytes
    for _ in range(share_count):
        _, at = _read_share(body, at)
    (count,) = _COUNT.unpack_from(body, at)
    found = numbers("Q", body[at + _COUNT.size : at + _COUNT.size + 16 * count])
    return list(zip(found[0::2], found[1::2], strict=True))


def decode_messages(body: memoryview, sequence: int, monotonic_offset_ms: int) -> Messages:
    """The batch and its shares; `monotonic_offset_ms` makes the time of day monotonic time."""
    record = MessageRecord(body, sequence)
    return Messages(record.batch(monotonic_offset_ms), record)


def _read_share(body: memoryview, at: int) -> tuple[Share, int]:
    queue_count, chosen = _SHARE.unpack_from(body, at)
    at += _SHARE.size
    middle = at + 8 * queue_count
    end = middle + 4 * chosen
    selection = numbers("I", body[middle:end]) if chosen else None
    return Share(numbers("Q", body[at:middle]), selection), end


def _read_batch(
    kind: int, layout: memoryview, data: bytes, numbering: tuple[int, int, int]
) -> Batch:
    sequence, count, arrived = numbering
    attributes = intern_attributes(True, 0, None, False)
    if kind == _STRIDED_KIND:
        stride, content_at, body_at = _STRIDED.unpack_from(layout)
        return StridedBatch(
            data, sequence, count, attributes, arrived, (0, stride, content_at, body_at)
        )
    envelope_bytes, properties_bytes, _ = _WHOLE.unpack_from(layout)
    at = _WHOLE.size
    middle = at + envelope_bytes
    end = middle + properties_bytes
    return SingleMessage(
        bytes(layout[at:middle]), bytes(layout[middle:end]), data, sequence, attributes, arrived,
        _read_keys(bytes(layout[end:])),
    )  # fmt: skip


def _read_offsets(layout: memoryview, count: int) -> list[array[int]]:
    """Where messages start, their contents start and end."""
    base = int.from_bytes(layout[:4], "little")
    width = 4 * count
    return [
        _without(base, numbers("I", layout[4 + column * width : 4 + (column + 1) * width]))
        for column in range(3)
    ]


def _without(base: int, offsets: array[int]) -> array[int]:
    return array("I", [offset - base for offset in offsets]) if base else offsets


def _read_keys(raw: bytes) -> tuple[str, ...]:
    keys = []
    at = 0
    while at < len(raw):
        start = at + _KEY.size
        at = start + int(_KEY.unpack_from(raw, at)[0])
        keys.append(raw[start:at].decode())
    return tuple(keys)
