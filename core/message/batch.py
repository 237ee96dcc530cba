"""Batches of messages, queue entries and message ranges.

No object is created per message. A batch is the publishes of one read, as the bytes received;
message `i` of it has the sequence number `batch.sequence + i`. A queue entry is a batch and the
messages of it that are in one queue (`None` for all). A message range is an interval of the
positions of an entry; ranges are delivered to consumers and come back when they are settled or
requeued. Ranges of one entry never overlap, so they are ordered by their first sequence number.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from sys import byteorder

from ..wire.properties import MessageAttributes

BATCH_BYTES = 430
"""About the memory that batch, entry and range of a single message take beside its bytes, with the
allocator's overhead. A batch of several messages takes up to 300 bytes more."""
STORED_BYTES = 340
"""About the memory that the store takes for a batch in the log, and an unacked delivery of it."""


class MemoryUsage:
    """The bytes of messages in memory; each batch counts once, in however many queues it is."""

    __slots__ = ("resident_bytes",)

    def __init__(self) -> None:
        self.resident_bytes = 0


class Batch:
    """Messages with the same attributes, in arrival order.

    `arrived_ms` is monotonic. A batch that is not `resident` has its data on disk only and must be
    fetched before its bytes are read (core/store/port.py); its sizes are always known. The envelope
    of a message is its exchange and routing key as two short strings, the form in which publish and
    deliver methods carry them.
    """

    __slots__ = (
        "__weakref__",
        "_memory_usage",
        "_overhead_bytes",
        "arrived_ms",
        "attributes",
        "count",
        "data",
        "is_shared",
        "location",
        "resident",
        "sequence",
    )  # fmt: skip

    def __init__(
        self, data: bytes, sequence: int, count: int, attributes: MessageAttributes, arrived_ms: int
    ) -> None:
        self.data = data
        self.sequence = sequence
        self.count = count
        self.attributes = attributes
        self.arrived_ms = arrived_ms
        self.resident = True
        self.location: object | None = None
        """The position on disk from which the store reads the batch; None if it is not there."""
        self.is_shared = False
        """Whether several queues have messages of it."""
        self._memory_usage: MemoryUsage | None = None

    def charge(self, memory_usage: MemoryUsage) -> None:
        """Counts the batch's bytes in `memory_usage` while it is resident; only the first call
        counts."""
        if self._memory_usage is None:
            self._memory_usage = memory_usage
            self._overhead_bytes = BATCH_BYTES + (STORED_BYTES if self.location is not None else 0)
            memory_usage.resident_bytes += self._overhead_bytes + (
                self.size_bytes if self.resident else 0
            )

    def evict(self, *, sizes: bool = True) -> None:
        """Frees the bytes; `restore` puts them back. `sizes` is False if no size of a message is
        needed until then."""
        if self._memory_usage is not None:
            self._memory_usage.resident_bytes -= self.size_bytes
        self.resident = False
        self.data = b""

    def restore(self, read: Batch) -> None:
        """Takes over the bytes of `read`, the batch decoded from this one's record."""
        self.data = read.data
        self.resident = True
        if self._memory_usage is not None:
            self._memory_usage.resident_bytes += self.size_bytes

    def __del__(self) -> None:
        memory_usage = self._memory_usage
        if memory_usage is not None:
            size = self.size_bytes if self.resident else 0
            memory_usage.resident_bytes -= self._overhead_bytes + size

    @property
    def bcc_keys(self) -> tuple[str, ...]:
        """The keys of the BCC header, which is not delivered; dead letters use them too."""
        return ()

    def envelope(self, index: int) -> bytes:
        raise NotImplementedError

    def properties(self, index: int) -> bytes:
        """Returns the flag word and property list of a message."""
        raise NotImplementedError

    def body(self, index: int) -> bytes:
        raise NotImplementedError

    def body_bytes(self, index: int) -> int:
        """Returns the size of a body, also while the batch is not resident."""
        raise NotImplementedError

    @property
    def size_bytes(self) -> int:
        """About the bytes that all messages together take on the wire."""
        raise NotImplementedError


class FramedBatch(Batch):
    """Messages in the frames received: publish method, content header, at most one body frame."""

    __slots__ = ()

    def bounds(self, index: int) -> tuple[int, int, int]:
        """Returns the offsets of the method frame, the header frame and the end of the message."""
        raise NotImplementedError

    def envelope(self, index: int) -> bytes:
        start, content, _ = self.bounds(index)
        return self.data[start + 13 : content - 2]

    def properties(self, index: int) -> bytes:
        _, content, _ = self.bounds(index)
        size = int.from_bytes(self.data[content + 3 : content + 7], "big")
        return self.data[content + 19 : content + 7 + size]

    def body(self, index: int) -> bytes:
        _, content, end = self.bounds(index)
        size = int.from_bytes(self.data[content + 11 : content + 19], "big")
        return self.data[end - 1 - size : end - 1] if size else b""


class StridedBatch(FramedBatch):
    """Messages whose frames differ only in the bytes of the body: offsets are computed.

    `first` is the offset of the first method frame. Messages are `stride` bytes apart; header frame
    and body payload begin `content_at` and `body_at` bytes into each.
    """

    __slots__ = ("body_at", "content_at", "first", "stride")

    def __init__(
        self,
        data: bytes,
        sequence: int,
        count: int,
        attributes: MessageAttributes,
        arrived_ms: int,
        layout: tuple[int, int, int, int],
    ) -> None:
        super().__init__(data, sequence, count, attributes, arrived_ms)
        self.first, self.stride, self.content_at, self.body_at = layout

    def restore(self, read: Batch) -> None:
        assert isinstance(read, StridedBatch)
        self.first = read.first
        super().restore(read)

    def bounds(self, index: int) -> tuple[int, int, int]:
        start = self.first + index * self.stride
        return start, start + self.content_at, start + self.stride

    def body_bytes(self, index: int) -> int:
        # The message ends with the body and its end octet, or has no body frame.
        return max(0, self.stride - self.body_at - 1)

    @property
    def size_bytes(self) -> int:
        return self.stride * self.count


_NO_OFFSETS: array[int] = array("I")


class ScatteredBatch(FramedBatch):
    """Messages of any layout: three offsets each, in arrays with an item per message."""

    __slots__ = ("_size_bytes", "_sizes", "contents", "ends", "starts")

    def __init__(
        self,
        data: bytes,
        sequence: int,
        attributes: MessageAttributes,
        arrived_ms: int,
        starts: array[int],
        contents: array[int],
        ends: array[int],
    ) -> None:
        super().__init__(data, sequence, len(starts), attributes, arrived_ms)
        self.starts = starts
        self.contents = contents
        self.ends = ends
        self._sizes: array[int] | None = None
        self._size_bytes = ends[-1] - starts[0]

    def evict(self, *, sizes: bool = True) -> None:
        if sizes:
            self.body_bytes(0)
        super().evict()
        self.starts = self.contents = self.ends = _NO_OFFSETS

    def restore(self, read: Batch) -> None:
        assert isinstance(read, ScatteredBatch)
        self.starts, self.contents, self.ends = read.starts, read.contents, read.ends
        super().restore(read)

    def bounds(self, index: int) -> tuple[int, int, int]:
        return self.starts[index], self.contents[index], self.ends[index]

    def body_bytes(self, index: int) -> int:
        # Sizes stay when the data is evicted: a limit in bytes may come into force meanwhile.
        if self._sizes is None:
            data = self.data
            octets = b"".join([data[at + 15 : at + 19] for at in self.contents])
            self._sizes = array("I", octets)
            if byteorder == "little":
                self._sizes.byteswap()
        return self._sizes[index]

    @property
    def size_bytes(self) -> int:
        return self._size_bytes


def framed_batch(
    data: bytes,
    sequence: int,
    attributes: MessageAttributes,
    arrived_ms: int,
    starts: array[int],
    contents: array[int],
    ends: array[int],
) -> FramedBatch:
    """Returns messages of any layout as a batch.

    A single message needs no arrays, which saves 200 bytes and three objects that the garbage
    collector visits.
    """
    if len(starts) > 1:
        return ScatteredBatch(data, sequence, attributes, arrived_ms, starts, contents, ends)
    start, content, end = starts[0], contents[0], ends[0]
    size = int.from_bytes(data[content + 11 : content + 19], "big")
    body = end - 1 - size if size else end
    layout = start, end - start, content - start, body - start
    return StridedBatch(data, sequence, 1, attributes, arrived_ms, layout)


class SingleMessage(Batch):
    """One message received in several body frames or over HTTP, with its body unframed."""

    __slots__ = ("_bcc_keys", "_body_bytes", "_envelope", "_properties", "_size_bytes")

    def __init__(
        self,
        envelope: bytes,
        properties: bytes,
        body: bytes,
        sequence: int,
        attributes: MessageAttributes,
        arrived_ms: int,
        bcc_keys: tuple[str, ...] = (),
    ) -> None:
        super().__init__(body, sequence, 1, attributes, arrived_ms)
        self._bcc_keys = bcc_keys
        self._envelope = envelope
        self._properties = properties
        self._body_bytes = len(body)
        self._size_bytes = len(body) + len(properties) + len(envelope) + 64

    def evict(self, *, sizes: bool = True) -> None:
        super().evict()
        self._envelope = self._properties = b""

    def restore(self, read: Batch) -> None:
        assert isinstance(read, SingleMessage)
        self._envelope, self._properties = read._envelope, read._properties
        super().restore(read)

    @property
    def bcc_keys(self) -> tuple[str, ...]:
        return self._bcc_keys

    def envelope(self, index: int) -> bytes:
        return self._envelope

    def properties(self, index: int) -> bytes:
        return self._properties

    def body(self, index: int) -> bytes:
        return self.data

    def body_bytes(self, index: int) -> int:
        return self._body_bytes

    @property
    def size_bytes(self) -> int:
        return self._size_bytes


class QueueEntry:
    """The messages of one batch that are in one queue.

    `deadline_ms` (monotonic) is when they expire, None for never. `settled_set` belongs to the
    store: which messages of the entry are settled.
    """

    __slots__ = ("batch", "count", "deadline_ms", "selection", "settled_set")

    def __init__(self, batch: Batch, selection: Sequence[int] | None) -> None:
        self.batch = batch
        self.selection = selection
        self.count = batch.count if selection is None else len(selection)
        self.deadline_ms: int | None = None
        self.settled_set: object | None = None

    def index(self, position: int) -> int:
        """Returns the index in the batch of the entry's message at `position`."""
        return position if self.selection is None else self.selection[position]

    def sequence(self, position: int) -> int:
        return self.batch.sequence + self.index(position)


class MessageRange:
    """The messages of `entry` at positions `low` to `high - 1`."""

    __slots__ = ("entry", "high", "low", "redelivered")

    def __init__(self, entry: QueueEntry, low: int, high: int, redelivered: bool = False) -> None:
        self.entry = entry
        self.low = low
        self.high = high
        self.redelivered = redelivered

    @property
    def count(self) -> int:
        return self.high - self.low

    @property
    def sequence(self) -> int:
        return self.entry.sequence(self.low)

    def body_bytes(self) -> int:
        """Returns the sum of the sizes of the bodies."""
        entry = self.entry
        batch = entry.batch
        if isinstance(batch, StridedBatch):
            return batch.body_bytes(0) * (self.high - self.low)
        return sum(batch.body_bytes(entry.index(at)) for at in range(self.low, self.high))


class PagedOut:
    """Consecutive messages of a queue of which only the number is in memory.

    `location` is where the store finds them. `lost` counts those that could not be read since the
    queue last paged in. `special` says why the queue must read each message whatever its rules are,
    as in `MessageAttributes`: some may have an expiration or, in a queue with priorities, a
    priority.
    """

    __slots__ = ("count", "location", "lost", "special")

    def __init__(self, count: int, location: object, *, special: int = 0) -> None:
        self.count = count
        self.location = location
        self.special = special
        self.lost = 0


def envelope(exchange: str, routing_key: str) -> bytes:
    """Returns an exchange name and routing key as two short strings.

    Raises `ValueError` if either is longer than 255 bytes.
    """
    first, second = exchange.encode(), routing_key.encode()
    if len(first) > 255 or len(second) > 255:
        raise ValueError("an exchange name or routing key is at most 255 bytes long")
    return bytes((len(first),)) + first + bytes((len(second),)) + second


def split_envelope(raw: bytes) -> tuple[str, str]:
    """Returns the exchange name and routing key of an envelope."""
    size = raw[0]
    return raw[1 : 1 + size].decode(), raw[2 + size :].decode()
