"""Chunks as a server sends them, made of batches by the store's own codec."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.core.messages import Sent, scattered, strided
from tests.core.store.fake_queue import FakeQueue
from warrenmq.core.message.batch import Batch, SingleMessage
from warrenmq.core.message.envelope import envelope, split_envelope
from warrenmq.core.message.model import Properties, Table
from warrenmq.core.message.queue_entry import QueueEntry
from warrenmq.core.store.codec import decode_messages
from warrenmq.core.store.encoder import encode_messages
from warrenmq.core.store.record import RecordKind, seal
from warrenmq.core.wire.frames import header_frame
from warrenmq.core.wire.properties import PERSISTENT, decode, encode
from warrenmq.hub.pipeline.chunk_format import COPIED, HEAD, MAGIC
from warrenmq.hub.pipeline.headers import text
from warrenmq.hub.pipeline.schema import COLUMNS

STREAM = "prices"
ARRIVED_MS = 1_700_000_000_123
LAST_SECOND = 253_402_300_799
Row = dict[str, object]


@dataclass(frozen=True)
class Published(Sent):
    """A message with an encoded property list."""

    raw: bytes = b"\x00\x00"

    @property
    def raw_properties(self) -> bytes:
        return self.raw

    def header_frame(self, channel: int) -> bytes:
        return header_frame(channel, len(self.body), self.raw)


def batch(messages: Sequence[Published], kind: str = "scattered") -> Batch:
    """A batch of one kind; a whole one has the first message alone."""
    if kind == "strided":
        return strided(messages, attributes=PERSISTENT)
    if kind == "scattered":
        return scattered(messages, attributes=PERSISTENT)
    first = messages[0]
    name = envelope(first.exchange, first.routing_key)
    return SingleMessage(name, first.raw, first.body, 1, PERSISTENT, 0, ("bcc",))


def record_body(made: Batch, offset: int, streams: int = 1) -> bytes:
    queues = [(FakeQueue(7 + number), QueueEntry(made, None)) for number in range(streams)]
    return b"".join(encode_messages(made, queues, ARRIVED_MS + offset, offsets=[(7, offset)]))


def chunk(made: Batch, offset: int, *, copied: bool = False, streams: int = 1) -> bytes:
    """A record of this batch, its first message at `offset`, behind its head."""
    segment, place = (0, 0) if copied else (3, 4096)
    body = record_body(made, offset, streams)
    record = b"".join(seal(segment, place, RecordKind.MESSAGES, 0, 1, [body]))
    head = (MAGIC, COPIED * copied, offset, made.count, len(record), 7, segment, place)
    return HEAD.pack(*head) + record


def chunks(batches: Iterable[Batch], first: int = 0) -> bytes:
    """Consecutive chunks from the offset `first` on."""
    found = []
    for made in batches:
        found.append(chunk(made, first))
        first += made.count
    return b"".join(found)


def plain(count: int, *, size: int = 8) -> list[Published]:
    """Messages with a key, a header and an id of their own."""
    return [
        Published(number.to_bytes(size, "big"), "news", f"key.{number}", raw=_properties(number))
        for number in range(count)
    ]


def _properties(number: int) -> bytes:
    return encode(Properties(headers={"n": number}, message_id=f"m-{number}", delivery_mode=2))


def rows(made: Batch, offset: int) -> list[Row]:
    """The rows of a batch, decoded message by message."""
    stored = decode_messages(memoryview(record_body(made, offset)), 1, 0).batch
    return [_row(stored, index, offset) for index in range(made.count)]


def _row(stored: Batch, index: int, offset: int) -> Row:
    exchange, key = split_envelope(stored.envelope(index))
    properties = decode(stored.properties(index))
    row: Row = {name: getattr(properties, name, None) for name in COLUMNS}
    headers = properties.headers
    seconds = properties.timestamp
    return row | {
        "stream": STREAM,
        "offset": offset + index,
        "timestamp": (ARRIVED_MS + offset) * 1000,
        "exchange": exchange,
        "routing_key": key,
        "headers": None if headers is None else _texts(headers),
        "body": stored.body(index),
        "message_timestamp": None
        if seconds is None or seconds > LAST_SECOND
        else seconds * 1_000_000,
    }


def _texts(headers: Table) -> list[tuple[str, str | None]]:
    return [(name, None if value is None else text(value)) for name, value in headers.items()]
