"""Decodes the body of a message record: a batch, and the shares of the queues in its messages.

Metadata, with its length, precedes the bytes of the messages, which are written as they came.
Queues of one share are adjacent. The lowest bit of a queue's number is set if the queue had
consumers, so that messages which they may have got are known after a crash. For streams the offset
of the first message is stored too: a lost record must not change the offsets of other messages.
"""

from __future__ import annotations

from array import array
from typing import Final

from ..message.batch import Batch, SingleMessage
from ..message.framed_batch import ScatteredBatch, StridedBatch
from ..wire.properties import RANKED, TIMED, intern_attributes
from .message_format import (
    COUNT,
    EXPIRING,
    KEY,
    META,
    NUMBERED,
    REDELIVERED,
    SCATTERED_KIND,
    SHARE,
    STRIDED,
    STRIDED_KIND,
    WHOLE,
    WHOLE_KIND,
    Offsets,
    numbers,
)


class Share:
    """Queues that have the same messages of a record: those of `selection`, None for all.

    `queues` has for each queue twice its id, plus 1 if it had consumers when the record was
    written.
    """

    __slots__ = ("queues", "selection")

    def __init__(self, queues: array[int], selection: array[int] | None) -> None:
        self.queues = queues
        self.selection = selection


SHARE_BYTES: Final = 250
"""Approximate memory of a decoded share."""


class MessageRecord:
    """A record of messages that was read and checked; a copy of the `body` read.

    Its shares are decoded on first use: if an index says which messages belong to a queue, the
    shares of thousands of other queues need not be read. All of its batches share their bytes.
    """

    __slots__ = (
        "_by_queue", "_data", "_kind", "_meta", "_offsets", "_shares", "count", "sequence",
        "size_bytes",
    )  # fmt: skip

    def __init__(self, body: memoryview, sequence: int) -> None:
        self._shares: list[Share] | None = None
        self._by_queue: dict[int, tuple[array[int] | None, bool]] = {}
        self._offsets: list[array[int]] = []
        size, _, self.count, self._kind, _, _, share_count = META.unpack_from(body)
        self._meta = memoryview(bytes(body[:size]))
        self._data = bytes(body[size:])
        self.sequence = sequence
        self.size_bytes = len(body) + SHARE_BYTES * share_count

    @property
    def redelivered(self) -> bool:
        return bool(self._kind >> 4 & REDELIVERED)

    @property
    def arrived_wall_ms(self) -> int:
        return arrival_of(self._meta)

    @property
    def shares(self) -> list[Share]:
        if self._shares is None:
            self._shares = read_shares(self._meta)[2]
        return self._shares

    def of(self, queue_id: int) -> tuple[array[int] | None, bool] | None:
        """Returns a queue's selection and whether the queue had consumers; None if it has no share.

        Thread safe: the table is assigned when it is complete.
        """
        found = self._by_queue
        if not found:
            found = {
                flagged_id >> 1: (share.selection, bool(flagged_id & 1))
                for share in self.shares
                for flagged_id in share.queues
            }
            self._by_queue = found
        return found.get(queue_id)

    def between(self, first: int, last: int) -> array[int] | None:
        """Returns the selection of all messages numbered `first` to `last`."""
        count = last - first + 1
        start = first - self.sequence
        return None if count == self.count else array("I", range(start, start + count))

    def batch(self, monotonic_offset_ms: int) -> Batch:
        """Returns the messages; the offset converts the time of day to monotonic time."""
        meta, data = self._meta, self._data
        size, wall_ms, count, kind, priority, expiration_bytes, _ = META.unpack_from(meta)
        at: int = META.size
        text = bytes(meta[at : at + expiration_bytes]).decode("latin-1")
        layout = meta[self._layout_at(size) :]
        numbering = self.sequence, count, wall_ms
        if kind & 15 == SCATTERED_KIND:
            batch: Batch = self._scattered(layout, data, wall_ms)
        else:
            batch = _read_batch(kind & 15, layout, data, numbering)
        expiration = text if kind >> 4 & EXPIRING else None
        batch.attributes = intern_attributes(True, priority, expiration, False)
        batch.arrived_ms = wall_ms + monotonic_offset_ms
        return batch

    def _scattered(self, layout: memoryview, data: bytes, arrived_ms: int) -> ScatteredBatch:
        """Returns a scattered batch. Its offsets are cached: a record shared by queues with a few
        messages each is read often."""
        if not self._offsets:
            self._offsets = _read_offsets(layout, self.count)
        attributes = intern_attributes(True, 0, None, False)
        return ScatteredBatch(data, self.sequence, attributes, arrived_ms, *self._offsets)

    def _layout_at(self, size: int) -> int:
        """Returns where the layout begins; computed from the end where there may be many shares."""
        kind = self._kind
        if kind & 15 == STRIDED_KIND:
            return size - STRIDED.size
        if kind & 15 == SCATTERED_KIND:
            return size - 4 - 12 * int(self.count)
        return _behind_shares(self._meta)


class Messages:
    """A message record with its decoded batch."""

    __slots__ = ("batch", "record")

    def __init__(self, batch: Batch, record: MessageRecord) -> None:
        self.batch = batch
        self.record = record

    @property
    def shares(self) -> list[Share]:
        return self.record.shares

    @property
    def redelivered(self) -> bool:
        return self.record.redelivered

    def of(self, queue_id: int) -> tuple[array[int] | None, bool] | None:
        return self.record.of(queue_id)


def read_shares(body: memoryview) -> tuple[int, int, list[Share]]:
    """Returns the number of messages in a record, whether they have an expiration or a priority
    (`TIMED`, `RANKED`), and the shares."""
    _, _, count, kind, priority, expiration_bytes, share_count = META.unpack_from(body)
    at = META.size + expiration_bytes
    shares = []
    for _ in range(share_count):
        share, at = _read_share(body, at)
        shares.append(share)
    special = TIMED * bool(kind >> 4 & EXPIRING) | RANKED * bool(priority)
    return count, special, shares


def read_offsets(body: memoryview) -> Offsets:
    """Returns the streams that have messages in a record, with their first offsets."""
    _, _, _, kind, _, expiration_bytes, share_count = META.unpack_from(body)
    if not kind >> 4 & NUMBERED:
        return ()
    at = META.size + expiration_bytes
    for _ in range(share_count):
        _, at = _read_share(body, at)
    (count,) = COUNT.unpack_from(body, at)
    found = numbers("Q", body[at + COUNT.size : at + COUNT.size + 16 * count])
    return list(zip(found[0::2], found[1::2], strict=True))


def arrival_of(body: memoryview) -> int:
    """Returns when the messages of a record arrived, in milliseconds since 1970."""
    return int(META.unpack_from(body)[1])


def has_all_of(body: memoryview, count: int) -> bool:
    """Whether a record has `count` messages, and nothing that consumers of them would not get: the
    keys of a BCC header, or bytes between the messages."""
    size, _, held, kind, _, _, _ = META.unpack_from(body)
    if held != count:
        return False
    if kind & 15 == WHOLE_KIND:
        return not WHOLE.unpack_from(body, _behind_shares(body))[2]
    if kind & 15 == SCATTERED_KIND:
        starts, ends = size - 12 * count, size - 4 * count
        return bytes(body[starts + 4 : starts + 4 * count]) == bytes(body[ends : size - 4])
    return True


def _behind_shares(body: memoryview) -> int:
    """Returns where a record's shares end, with the offsets of streams behind them."""
    _, _, _, kind, _, expiration_bytes, share_count = META.unpack_from(body)
    at: int = META.size + expiration_bytes
    for _ in range(share_count):
        queue_count, chosen = SHARE.unpack_from(body, at)
        at += SHARE.size + 8 * queue_count + 4 * chosen
    if kind >> 4 & NUMBERED:
        at += COUNT.size + 16 * int(COUNT.unpack_from(body, at)[0])
    return at


def decode_messages(body: memoryview, sequence: int, monotonic_offset_ms: int) -> Messages:
    """Decodes a record; `monotonic_offset_ms` converts the time of day to monotonic time."""
    record = MessageRecord(body, sequence)
    return Messages(record.batch(monotonic_offset_ms), record)


def _read_share(body: memoryview, at: int) -> tuple[Share, int]:
    queue_count, chosen = SHARE.unpack_from(body, at)
    at += SHARE.size
    middle = at + 8 * queue_count
    end = middle + 4 * chosen
    selection = numbers("I", body[middle:end]) if chosen else None
    return Share(numbers("Q", body[at:middle]), selection), end


def _read_batch(
    kind: int, layout: memoryview, data: bytes, numbering: tuple[int, int, int]
) -> Batch:
    sequence, count, arrived = numbering
    attributes = intern_attributes(True, 0, None, False)
    if kind == STRIDED_KIND:
        stride, content_at, body_at = STRIDED.unpack_from(layout)
        return StridedBatch(
            data, sequence, count, attributes, arrived, (0, stride, content_at, body_at)
        )
    envelope_bytes, properties_bytes, _ = WHOLE.unpack_from(layout)
    at = WHOLE.size
    middle = at + envelope_bytes
    end = middle + properties_bytes
    return SingleMessage(
        bytes(layout[at:middle]), bytes(layout[middle:end]), data, sequence, attributes, arrived,
        _read_keys(bytes(layout[end:])),
    )  # fmt: skip


def _read_offsets(layout: memoryview, count: int) -> list[array[int]]:
    """Returns three arrays: where the messages start, where their contents start, and where they
    end."""
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
        start = at + KEY.size
        at = start + int(KEY.unpack_from(raw, at)[0])
        keys.append(raw[start:at].decode())
    return tuple(keys)
