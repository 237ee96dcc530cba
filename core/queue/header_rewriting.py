"""Adds a numeric header to messages, such as `x-delivery-count` or `x-stream-offset`.

The messages of a range are encoded again as frames with the header added; the result is delivered
like any other range, while the queue keeps the original. Messages of a `StridedBatch` are copied
column by column (0.1 us each), others one by one (1 us).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import partial

from ..message.batch import Batch, MessageRange, QueueEntry, ScatteredBatch, StridedBatch
from ..wire.deliver import COLUMNS_MAX, write_numbers
from ..wire.frames import END_OCTET
from ..wire.splice import splice

_METHOD_HEAD = bytes(13)
"""In place of the start of a publish frame, of which only exchange and key are read again."""
_FLAGS_END = b"\0" + END_OCTET
_CLASS_AND_WEIGHT = b"\x00\x3c\x00\x00"
_CHANNEL = b"\x00\x01"
"""The channel of most consumers; for another the framer rewrites the frame headers."""

Heads = tuple[bytes, bytes, int]
"""The bytes before the number, those from it to the body, and the offset of the header frame."""


def with_header(
    messages: MessageRange, header: bytes, numbers: Iterable[int | None]
) -> MessageRange:
    """Returns the same messages, each with its number in a header of type long; None adds none."""
    batch = messages.entry.batch
    count = messages.high - messages.low
    if isinstance(numbers, range) and isinstance(batch, StridedBatch) and numbers.step == 1:
        data, size, content = _rewrite_uniform(batch, messages, header, numbers.start)
        end = size * count
        starts = array("I", range(0, end, size))
        contents = array("I", range(content, end, size))
        ends = array("I", range(size, end + 1, size))
    else:
        data, starts, contents, ends = _rewrite_each(messages, header, numbers)
    made = partial(ScatteredBatch, data, batch.sequence, batch.attributes, batch.arrived_ms)
    return MessageRange(
        QueueEntry(made(starts, contents, ends), None), 0, count, messages.redelivered
    )


def _rewrite_uniform(
    batch: StridedBatch, messages: MessageRange, header: bytes, first: int
) -> tuple[bytes, int, int]:
    """Encodes messages that differ only in their bodies, numbered from `first`.

    Returns the bytes, the size of each message, and the offset of the header frame in it.
    """
    count, index = messages.high - messages.low, messages.entry.index(messages.low)
    body_bytes = batch.body_bytes(index)
    before, behind, content = _heads(batch, index, header, body_bytes)
    template = before + bytes(8) + behind
    width = len(template) + (body_bytes + 1 if body_bytes else 0)
    is_whole = messages.entry.selection is None and 0 < body_bytes <= COLUMNS_MAX
    if is_whole or not body_bytes:
        tail = bytes(body_bytes) + END_OCTET if body_bytes else b""
        out = bytearray((template + tail) * count)
        write_numbers(out, len(before), width, first, count)
        start = batch.first + index * batch.stride + batch.body_at
        stop = start + batch.stride * (count - 1) + 1
        for column in range(body_bytes):
            at = len(template) + column
            out[at::width] = batch.data[start + column : stop + column : batch.stride]
        return bytes(out), width, content
    pieces: list[bytes] = []
    for position, number in enumerate(range(first, first + count), messages.low):
        body = batch.body(messages.entry.index(position))
        pieces += (before, number.to_bytes(8, "big"), behind, body, END_OCTET)
    return b"".join(pieces), width, content


def _rewrite_each(
    messages: MessageRange, header: bytes, numbers: Iterable[int | None]
) -> tuple[bytes, array[int], array[int], array[int]]:
    pieces: list[bytes] = []
    starts, contents, ends = array("I"), array("I"), array("I")
    at = 0
    batch = messages.entry.batch
    for position, number in zip(range(messages.low, messages.high), numbers, strict=False):
        index = messages.entry.index(position)
        body = batch.body(index)
        name = None if number is None else header
        before, behind, content = _heads(batch, index, name, len(body))
        octets = b"" if number is None else number.to_bytes(8, "big")
        size = len(before) + len(octets) + len(behind) + (len(body) + 1 if body else 0)
        pieces += (before, octets, behind, body, END_OCTET) if body else (before, octets, behind)
        starts.append(at)
        contents.append(at + content)
        at += size
        ends.append(at)
    return b"".join(pieces), starts, contents, ends


def _heads(batch: Batch, index: int, header: bytes | None, body_bytes: int) -> Heads:
    envelope, properties = batch.envelope(index), batch.properties(index)
    before, after = (properties, b"") if header is None else splice(properties, header)
    list_bytes = len(before) + len(after) + (0 if header is None else 8)
    method = _METHOD_HEAD + envelope + _FLAGS_END
    frame = b"\x02" + _CHANNEL + (12 + list_bytes).to_bytes(4, "big") + _CLASS_AND_WEIGHT
    behind = after + END_OCTET
    if body_bytes:
        behind += b"\x03" + _CHANNEL + body_bytes.to_bytes(4, "big")
    return method + frame + body_bytes.to_bytes(8, "big") + before, behind, len(method)
