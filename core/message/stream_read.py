"""A read of a stream as it lies in the log: the messages wanted, and the records found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .queue_entry import MessageRange, PagedOut


class RecordsWanted(NamedTuple):
    """The messages of a stream at offsets `start` to `end - 1`.

    `contents` are ranges of the stream, each with the offset of its first message; the first range
    has the message at `start`.
    """

    stream_id: int
    start: int
    end: int
    contents: Sequence[tuple[int, MessageRange | PagedOut]]

    @property
    def first_end(self) -> int:
        """The offset behind the first range."""
        first, content = self.contents[0]
        return min(self.end, first + content.count)


class StreamRead(NamedTuple):
    """Whole chunks (docs/streams.md) with the messages of a stream at offsets `first` to
    `next_offset - 1`, except those that were left out, in the pieces that they were read in.
    Without pieces these can't be read. `arrived_ms` is when those of the first chunk arrived, in
    milliseconds since 1970. `checksum` differs where the bytes do."""

    first: int
    next_offset: int
    pieces: Sequence[bytes | bytearray | memoryview] = ()
    arrived_ms: int = 0
    checksum: int = 0

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.pieces))

    @property
    def data(self) -> bytes:
        """The pieces as one: a copy."""
        return b"".join(self.pieces)


class StreamMeasure(NamedTuple):
    """Records that end at offset `end` and have `size_bytes`. With `is_full` the next one would be
    too much."""

    end: int
    size_bytes: int
    is_full: bool
