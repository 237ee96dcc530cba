"""Messages in batches: the batch that was read, and a queue's share of it.

Nothing is made per message. A batch is one read's publishes as the bytes that came; message `i`
of it has the sequence number `batch.sequence + i`. A queue holds runs: a batch and which of its
messages are the queue's (`None` for all). A range is an interval of an entry's positions; it is
what travels from queue to consumer and back. Ranges of one entry never overlap, so they order by
their first sequence number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from sys import byteorder

from ..wire.properties import MessageAttributes

BATCH_BYTES = 430
"""About what the batch, run and range of a message that came alone take beside it, with what the
allocator adds. Several messages together have up to 300 more, for all of them."""
STORED_BYTES = 340
"""What the store holds of a batch in the log, about, and what an unacked delivery adds to it."""


class MemoryUsage:
    """Bytes of messages in memory, each batch counted once however many queues hold it."""

    __slots__ = ("resident_bytes",)

    def __init__(self) -> None:
        self.resident_bytes = 0


class Batch(ABC):
    """Messages with the same attributes, in arrival order.

    `arrived_ms` is monotonic. A batch that is not `resident` has its data on disk only and must be
    fetched before it is read (core/store/port.py); sizes can always be asked. The envelope of a
    message is its exchange and routing key as two short strings, as both publish and deliver
    carry them.
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
        """Where its store can read it again, if it was written."""
        self.is_shared = False
        """Several queues were given messages of it."""
        self._memory_usage: MemoryUsage | None = None

    def charge(self, memory_usage: MemoryUsage) -> None:
        """Counts what the batch takes for as long as it is resident."""
        if self._memory_usage is None:
            self._memory_usage = memory_usage
            self._overhead_bytes = BATCH_BYTES + (STORED_BYTES if self.location is not None else 0)
            memory_usage.resident_bytes += self._overhead_bytes + (
                self.size_bytes if self.resident else 0
            )

    def evict(self, *, sizes: bool = True) -> None:
        """Lets go of the bytes; `restore` brings them back. Without `sizes` nobody will ask
        meanwhile how large a message is."""
        if self._memory_usage is not None:
            self._memory_usage.resident_bytes -= self.size_bytes
        self.resident = False
        self.data = b""

    def restore(self, read: Batch) -> None:
        """Takes the bytes of a batch that was made from what `self` was written as."""
        self.data = read.data
        self.resident = True
        if self._memory_usage is not None:
            self._memory_usage.resident_bytes += self.size_bytes

    def __del__(self) -> None:
        charged = self._memory_usage
        if charged is not None:
            size = self.size_bytes if self.resident else 0
            charged.resident_bytes -= self._overhead_bytes + size

    @property
    def bcc_keys(self) -> tuple[str, ...]:
        """Keys of a BCC header: nobody is told, but a dead letter is routed by them again."""
        return ()

    @abstractmethod
    def envelope(self, index: int) -> bytes: ...

    @abstractmethod
    def properties(self, index: int) -> bytes:
        """Flag word and property list."""

    @abstractmethod
    def body(self, index: int) -> bytes: ...

    @abstractmethod
    def body_bytes(self, index: int) -> int: ...

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """About what all messages together weigh on the wire."""


class FramedBatch(Batch):
    """Messages kept as the frames that came: publish method, header, at most one body frame."""

    __slots__ = ()

    @abstractmethod
    def bounds(self, index: int) -> tuple[int, int, int]:
        """Offsets of the method frame, of the header frame and behind the last frame."""

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
    """Messages whose frames differ in nothing but the body's bytes: no offset is kept.

    `first` is the offset of the first method frame; header frame and body payload stand
    `content_at` and `body_at` bytes further in each message, which are `stride` bytes apart.
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
        # What stands behind `body_at` is the body and its end octet, or nothing.
        return max(0, self.stride - self.body_at - 1)

    @property
    def size_bytes(self) -> int:
        return self.stride * self.count


_NO_OFFSETS: array[int] = array("I")


class ScatteredBatch(FramedBatch):
    """Messages of any shape: three offsets each, in arrays of the message count's length."""

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
        # They outlive the data: a limit in bytes may come up while that is on disk.
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
    """Messages of any shape as a batch. A single one needs no arrays: three objects less that the
    garbage collector looks at, and 200 bytes, in a backlog of messages that came alone."""
    if len(starts) > 1:
        return ScatteredBatch(data, sequence, attributes, arrived_ms, starts, contents, ends)
    start, content, end = starts[0], contents[0], ends[0]
    size = int.from_bytes(data[content + 11 : content + 19], "big")
    body = end - 1 - size if size else end
    layout = start, end - start, content - start, body - start
    return StridedBatch(data, sequence, 1, attributes, arrived_ms, layout)


class SingleMessage(Batch):
    """One message that came in many frames or over HTTP: its parts, body unframed."""

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
    """One queue's messages of one batch.

    `deadline_ms` (monotonic) is when they expire, None for never. `kept` belongs to the store: how
    much of the entry is still to be kept, and where.
    """

    __slots__ = ("batch", "count", "deadline_ms", "selection", "settled_set")

    def __init__(self, batch: Batch, selection: Sequence[int] | None) -> None:
        self.batch = batch
        self.selection = selection
        self.count = batch.count if selection is None else len(selection)
        self.deadline_ms: int | None = None
        self.settled_set: object | None = None

    def index(self, position: int) -> int:
        """The place in the batch of the entry's message at `position`."""
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
        """Sum of the bodies' sizes."""
        entry = self.entry
        batch = entry.batch
        if isinstance(batch, StridedBatch):
            return batch.body_bytes(0) * (self.high - self.low)
        return sum(batch.body_bytes(entry.index(at)) for at in range(self.low, self.high))


class PagedOut:
    """Messages of a queue of which memory holds nothing but their number.

    They follow each other in the queue; `place` is where the store finds them. `lost` is how many
    could not be read since the queue looked last. `special` is why the queue must look at each,
    whatever its rules are, as in `MessageAttributes`: among them may be some with an expiration of
    their own, or, in a queue that orders by priority, some with a priority.
    """

    __slots__ = ("count", "location", "lost", "special")

    def __init__(self, count: int, location: object, *, special: int = 0) -> None:
        self.count = count
        self.location = location
        self.special = special
        self.lost = 0


def envelope(exchange: str, routing_key: str) -> bytes:
    """Raises `ValueError` if either is longer than 255 bytes."""
    first, second = exchange.encode(), routing_key.encode()
    if len(first) > 255 or len(second) > 255:
        raise ValueError("an exchange name or routing key is at most 255 bytes long")
    return bytes((len(first),)) + first + bytes((len(second),)) + second


def split_envelope(raw: bytes) -> tuple[str, str]:
    """Exchange name and routing key."""
    size = raw[0]
    return raw[1 : 1 + size].decode(), raw[2 + size :].decode()
