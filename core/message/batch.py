"""Record batches: the publishes of one read, as the bytes received.

No object is created per message. Message `i` of a batch has the sequence number
`batch.sequence + i`.
"""

from __future__ import annotations

from typing import Final

from ..wire.properties import MessageAttributes

BATCH_BYTES: Final = 430
"""About the memory that batch, entry and range of a single message take beside its bytes, with the
allocator's overhead. A batch of several messages takes up to 300 bytes more."""
STORED_BYTES: Final = 340
"""About the memory that the store takes for a batch in the log, and an unacked delivery of it."""


class MemoryUsage:
    """The bytes of messages in memory; each batch counts once, in however many queues it is."""

    __slots__ = ("resident_bytes",)

    def __init__(self) -> None:
        self.resident_bytes = 0


class BatchLocation:
    """The location from which a store reads a batch; each store has its own kinds."""

    __slots__ = ()


class Batch:
    """Messages with the same attributes, in arrival order.

    `arrived_ms` is monotonic. A batch that is not `resident` has its data on disk only and must be
    fetched before its bytes are read (core/store/port.py); its sizes are always known.
    """

    __slots__ = (
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
    )

    def __init__(
        self, data: bytes, sequence: int, count: int, attributes: MessageAttributes, arrived_ms: int
    ) -> None:
        self.data = data
        self.sequence = sequence
        self.count = count
        self.attributes = attributes
        self.arrived_ms = arrived_ms
        self.resident = True
        self.location: BatchLocation | None = None
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
        """The approximate number of bytes that all messages together take on the wire."""
        raise NotImplementedError


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
