"""Encodes a message record: a batch, and the shares of the queues in its messages.

The format is in `codec.py`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from ..message.batch import Batch, SingleMessage
from ..message.framed_batch import ScatteredBatch, StridedBatch
from ..message.queue_entry import QueueEntry
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
    octets,
)
from .port import QueueIdentity
from .record import Buffer


def encode_messages(
    batch: Batch,
    entries: Sequence[tuple[QueueIdentity, QueueEntry]],
    arrived_wall_ms: int,
    *,
    redelivered: bool = False,
    offsets: Offsets = (),
) -> list[Buffer]:
    """Returns the body of a message record in pieces; the bytes of the messages are not copied."""
    attributes = batch.attributes
    expiration = (attributes.expiration or "").encode()
    kind, layout, data = _layout(batch)
    shares = _shares(entries)
    share_count = len(shares) // 2
    flags = (REDELIVERED if redelivered else 0) | (
        EXPIRING if attributes.expiration is not None else 0
    )
    if offsets:
        flags |= NUMBERED
        found = array("Q", [number for pair in offsets for number in pair])
        shares += (COUNT.pack(len(offsets)), octets(found))
    size = META.size + len(expiration) + len(layout) + sum(map(len, shares))
    meta = META.pack(
        size, arrived_wall_ms, batch.count, kind | flags << 4, attributes.priority, len(expiration),
        share_count,
    )  # fmt: skip
    return [b"".join((meta, expiration, *shares, layout)), data]


def _shares(entries: Sequence[tuple[QueueIdentity, QueueEntry]]) -> list[bytes]:
    """Returns two pieces for each share. Entries of one share are adjacent and have the same
    selection object."""
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
        parts += (SHARE.pack(len(queues), len(chosen) // 4), octets(queues) + chosen)
    return parts


def _layout(batch: Batch) -> tuple[int, bytes, Buffer]:
    data: Buffer = batch.data
    if isinstance(batch, StridedBatch):
        layout = STRIDED.pack(batch.stride, batch.content_at, batch.body_at)
        end = batch.first + batch.stride * batch.count
        if batch.first or end < len(data):
            data = memoryview(data)[batch.first : end]
        return STRIDED_KIND, layout, data
    if isinstance(batch, ScatteredBatch):
        base, end = batch.starts[0], batch.ends[-1]
        arrays = (batch.starts, batch.contents, batch.ends)
        layout = base.to_bytes(4, "little") + b"".join(map(octets, arrays))
        if base or end < len(data):
            data = memoryview(data)[base:end]
        return SCATTERED_KIND, layout, data
    assert isinstance(batch, SingleMessage)
    envelope, properties = batch.envelope(0), batch.properties(0)
    bcc_keys = b"".join(KEY.pack(len(key)) + key for key in map(str.encode, batch.bcc_keys))
    layout = WHOLE.pack(len(envelope), len(properties), len(bcc_keys))
    return WHOLE_KIND, b"".join((layout, envelope, properties, bcc_keys)), data
