"""The chunks of a stream: its messages in memory and on disk, in order of offset."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from ..message.queue_entry import MessageRange, PagedOut
from ..slices import release

UNKNOWN: Final = -1
"""The size of a chunk that is not computed yet."""
_REMOVED_MIN: Final = 64
"""Removed chunks that stay in the list before it is cut."""


class StreamChunk:
    """Consecutive messages of a stream, from `offset` on.

    `newest_ms` is when the last one arrived (monotonic), None if it has not been read yet.
    """

    __slots__ = ("content", "newest_ms", "offset", "size_bytes")

    def __init__(
        self, offset: int, content: MessageRange | PagedOut, size_bytes: int, newest_ms: int | None
    ) -> None:
        self.offset = offset
        self.content = content
        self.size_bytes = size_bytes
        """About its bytes on disk, `UNKNOWN` if not computed yet."""
        self.newest_ms = newest_ms

    @property
    def end(self) -> int:
        return self.offset + self.content.count


_REMOVED: Final = StreamChunk(0, PagedOut(0, None), 0, None)


class StreamChunks:
    """The chunks, without gaps between them; they are appended at the end, and removed at the
    front."""

    def __init__(self) -> None:
        self._chunks: list[StreamChunk] = []
        self._offsets: list[int] = []
        """The offsets of the chunks, to search in."""
        self._removed = 0
        """Chunks at the front that were removed, but are in the list still."""

    def __iter__(self) -> Iterator[StreamChunk]:
        return islice(self._chunks, self._removed, None)

    def append(self, chunk: StreamChunk) -> None:
        self._chunks.append(chunk)
        self._offsets.append(chunk.offset)

    def at(self, offset: int) -> StreamChunk:
        """Returns the chunk with the message at `offset`, which must be in the stream."""
        return self._chunks[bisect_right(self._offsets, offset, self._removed) - 1]

    def from_offset(self, offset: int, limit: int) -> list[StreamChunk]:
        """Returns up to `limit` chunks, beginning with that of the message at `offset`, which must
        be in the stream."""
        at = bisect_right(self._offsets, offset, self._removed) - 1
        return self._chunks[at : at + limit]

    @property
    def last(self) -> StreamChunk:
        return self._chunks[-1]

    @property
    def oldest(self) -> StreamChunk | None:
        return self._chunks[self._removed] if self._removed < len(self._chunks) else None

    @property
    def second_offset(self) -> int | None:
        """The offset of the chunk after the oldest, None if there is none."""
        second = self._removed + 1
        return self._offsets[second] if second < len(self._offsets) else None

    def remove_oldest(self) -> None:
        self._chunks[self._removed] = _REMOVED
        self._removed += 1
        if self._removed > _REMOVED_MIN and self._removed * 2 > len(self._offsets):
            del self._offsets[: self._removed], self._chunks[: self._removed]
            self._removed = 0

    def insert_before_oldest(self, older: StreamChunk) -> None:
        """Adds a chunk that was split off the front of the oldest, which begins behind it now."""
        at = self._removed
        oldest = self._chunks[at]
        self._chunks[at : at + 1] = [older, oldest]
        self._offsets[at : at + 1] = [older.offset, oldest.offset]

    def some_from(self, offset: int, limit: int) -> tuple[int, list[StreamChunk]]:
        """Returns up to `limit` chunks that begin at `offset` or later, and the first one's index
        for `before` and `replace`."""
        at = bisect_left(self._offsets, offset, self._removed)
        return at, self._chunks[at : at + limit]

    def before(self, at: int) -> StreamChunk | None:
        """Returns the chunk before the one at index `at`, None if that is the oldest."""
        return self._chunks[at - 1] if at > self._removed else None

    def replace(self, at: int, count: int, chunks: Sequence[StreamChunk]) -> None:
        """Replaces `count` chunks from index `at` on by others of the same messages."""
        self._chunks[at : at + count] = chunks
        self._offsets[at : at + count] = [chunk.offset for chunk in chunks]

    def clear(self) -> Iterator[Iterator[None]]:
        """Removes all chunks; yields the steps that free them."""
        chunks, self._chunks = self._chunks, []
        offsets, self._offsets = self._offsets, []
        self._removed = 0
        yield release(chunks, chunks.pop)
        yield release(offsets, offsets.pop)
