"""Adds a numeric header to messages, such as `x-delivery-count` or `x-stream-offset`.

The messages of a range are framed again with the header added; the result is delivered like any
other range, while the queue keeps the original. Messages of a `StridedBatch` are copied column by
column (0.1 us each), others one by one (2 us).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from ..message.framed_batch import ScatteredBatch, StridedBatch
from ..message.framing import HEADER_HEAD_BYTES, FramedMessages, publish_frame
from ..message.queue_entry import MessageRange, QueueEntry
from ..wire.deliver import COLUMNS_MAX, write_numbers
from ..wire.frames import END_OCTET
from ..wire.splice import splice, with_number


def with_header(
    messages: MessageRange, header: bytes, numbers: Iterable[int | None]
) -> MessageRange:
    """Returns the same messages, each with its number in a header of type long; None adds none."""
    batch = rewritten(messages, header, numbers)
    return MessageRange(QueueEntry(batch, None), 0, batch.count, messages.redelivered)


def rewritten(
    messages: MessageRange, header: bytes, numbers: Iterable[int | None]
) -> ScatteredBatch:
    """As `with_header`, as a batch."""
    batch = messages.entry.batch
    if isinstance(numbers, range) and isinstance(batch, StridedBatch) and numbers.step == 1:
        return _rewrite_uniform(batch, messages, header, numbers.start)
    frames, method, envelope = FramedMessages(), b"", None
    for position, number in zip(range(messages.low, messages.high), numbers, strict=False):
        index = messages.entry.index(position)
        own, properties = batch.envelope(index), batch.properties(index)
        if own != envelope:
            envelope, method = own, publish_frame(own)
        if number is not None:
            properties = with_number(properties, header, number)
        frames.add(method, properties, batch.body(index))
    return frames.scattered(batch.sequence, batch.attributes, batch.arrived_ms)


def _rewrite_uniform(
    batch: StridedBatch, messages: MessageRange, header: bytes, first: int
) -> ScatteredBatch:
    """Frames messages that differ only in their bodies, numbered from `first`."""
    count, index = messages.high - messages.low, messages.entry.index(messages.low)
    method = publish_frame(batch.envelope(index))
    before, after = splice(batch.properties(index), header)
    body_bytes = batch.body_bytes(index)
    frames = FramedMessages()
    frames.add(method, before + bytes(8) + after, bytes(body_bytes))
    template, number_at = frames.data(), len(method) + HEADER_HEAD_BYTES + len(before)
    is_whole = messages.entry.selection is None and body_bytes <= COLUMNS_MAX
    fill = _fill_columns if is_whole or not body_bytes else _join_bodies
    data = fill(batch, messages, template, number_at, first)
    width, end = len(template), len(template) * count
    return ScatteredBatch(
        data, batch.sequence, batch.attributes, batch.arrived_ms,
        array("I", range(0, end, width)), array("I", range(len(method), end, width)),
        array("I", range(width, end + 1, width)),
    )  # fmt: skip


def _fill_columns(
    batch: StridedBatch, messages: MessageRange, template: bytes, number_at: int, first: int
) -> bytes:
    """Returns messages like the template with their numbers and bodies, octet by octet of all."""
    count, index = messages.high - messages.low, messages.entry.index(messages.low)
    width, body_bytes = len(template), batch.body_bytes(index)
    out = bytearray(template * count)
    write_numbers(out, number_at, width, first, count)
    start = batch.first + index * batch.stride + batch.body_at
    stop = start + batch.stride * (count - 1) + 1
    for column in range(body_bytes):
        at = width - body_bytes - 1 + column
        out[at::width] = batch.data[start + column : stop + column : batch.stride]
    return bytes(out)


def _join_bodies(
    batch: StridedBatch, messages: MessageRange, template: bytes, number_at: int, first: int
) -> bytes:
    """As `_fill_columns`, message by message."""
    body_at = len(template) - batch.body_bytes(messages.entry.index(messages.low)) - 1
    head, tail = template[:number_at], template[number_at + 8 : body_at]
    pieces: list[bytes] = []
    for number, position in enumerate(range(messages.low, messages.high), first):
        body = batch.body(messages.entry.index(position))
        pieces += (head, number.to_bytes(8, "big"), tail, body, END_OCTET)
    return b"".join(pieces)
