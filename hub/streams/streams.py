"""Reads streams for clients, a few at a time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, NamedTuple

from ..engine.port import Engine, StreamRead
from ..processes.starter import ProcessStarter
from . import arrow
from .answer_slots import AnswerSlots
from .archive_reader import ArchiveReader
from .errors import RecordsDamaged, StreamAgedOut, TooManyReaders
from .finding import FoundStream, Source, check, find

ANSWER_BYTES: Final = 8 * 1024 * 1024
"""About what one answer has at most."""
ANSWERS_MAX: Final = 8
"""Answers that are in memory at once."""
WAIT_S: Final = 10.0
"""How long a request waits until there is memory for its answer."""


class WantedMessages(NamedTuple):
    """The messages of a stream at offsets `start` to `end - 1`, to its end for None; of that
    incarnation, unless None. With `skip_damaged` without what can't be read."""

    start: int
    end: int | None = None
    incarnation: str | None = None
    skip_damaged: bool = False


class ReadChunks(NamedTuple):
    """The chunks of an answer, and the incarnation of the stream that they are of."""

    incarnation: str
    chunks: StreamRead


class Streams:
    """The streams of an engine. One is read at a time, since consumers need the disk too."""

    def __init__(self, engine: Engine, starter: ProcessStarter, archives: str = "") -> None:
        """`archives` is the directory below which archives are read, if it is not empty."""
        self._engine = engine
        self._archives = ArchiveReader(starter, archives)
        self._slots = AnswerSlots(ANSWERS_MAX)
        self._reading = asyncio.Lock()

    async def find(self, vhost: str, name: str, source: Source | None) -> FoundStream:
        """Returns the stream queue of this name, or else the exchange that keeps messages; only one
        of them with `source`. Raises `StreamMissing` or `NotAStream`."""
        return await find(self._engine, vhost, name, source)

    @asynccontextmanager
    async def answering(self, user: str) -> AsyncIterator[None]:
        """Bounds the memory for answers: entered while one is read and sent.

        Raises `TooManyReaders` if there is none for too long.
        """
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._slots.one_for(user, WAIT_S))
            except TimeoutError:
                raise TooManyReaders(
                    f"too many concurrent reads (limit {ANSWERS_MAX}, half of them for one user); "
                    "retry later",
                    field="chunks",
                    limit=str(ANSWERS_MAX),
                ) from None
            yield

    async def read(
        self, found: FoundStream, wanted: WantedMessages, limit_bytes: int
    ) -> ReadChunks:
        """Reads whole chunks, as many as there are and as the limit allows, but at least one.

        What the log has dropped is read from an archive. Raises `OffsetAhead`, `StreamAgedOut`,
        `StreamRecreated`, `StreamMissing`, `RecordsDamaged` or `ArchiveUnreadable`.
        """
        limit_bytes = min(limit_bytes, ANSWER_BYTES)
        start, end, incarnation, skip_damaged = wanted
        while True:
            try:
                state = check(found, start, incarnation)
            except StreamAgedOut as dropped:
                read = await self._archives.read(found, start, end, limit_bytes, dropped)
                return ReadChunks(found.state().incarnation, read)
            end = state.next_offset if end is None else end
            if start >= min(end, state.next_offset):
                return ReadChunks(state.incarnation, StreamRead(start, start))
            async with self._reading:
                chunks = await found.stream.chunks(
                    start, end, limit_bytes, skip_damaged=skip_damaged
                )
            if chunks is None:
                continue  # Retention has dropped some; `check` says so if `start` is among them.
            if not chunks.pieces and not skip_damaged:
                raise _damaged(found, chunks)
            return ReadChunks(state.incarnation, chunks)

    async def arrow(
        self, found: FoundStream, wanted: WantedMessages, limit_bytes: int | None
    ) -> AsyncGenerator[bytes]:
        """Yields an Arrow IPC stream of the messages wanted that there are now, of all or of about
        `limit_bytes` of chunks; first an empty piece, if the first read did not fail.

        Raises as `read` does, and `ArrowMissing`.
        """
        first = found.state().first  # What is before it may be in an archive.
        state = check(found, max(first, wanted.start), wanted.incarnation)
        end = state.next_offset if wanted.end is None else min(wanted.end, state.next_offset)
        wanted = wanted._replace(end=end, incarnation=state.incarnation)
        left = sys.maxsize if limit_bytes is None else limit_bytes
        head = await asyncio.to_thread(arrow.head)
        read = await self.read(found, wanted, left)
        yield b""
        yield head
        while read.chunks.next_offset > wanted.start:
            data, start = read.chunks.data, wanted.start
            if data:
                yield await asyncio.to_thread(arrow.batch, data, found.name, start, end)
            left -= len(data)
            wanted = wanted._replace(start=read.chunks.next_offset)
            if left <= 0 or wanted.start >= end:
                break
            read = await self.read(found, wanted, left)
        yield arrow.END

    async def find_moment(self, found: FoundStream, wall_ms: int) -> int:
        """Returns the offset of the first message that arrived at `wall_ms` or later, by the times
        that records and archives have; the end of the stream if there is none. Raises
        `ArchiveUnreadable`."""
        at = await found.stream.find_moment(wall_ms)
        if at > found.state().first:
            return at  # The log begins before it.
        archived = await self._archives.find_moment(found, wall_ms)
        return at if archived is None else min(at, archived)

    async def archived_first(self, found: FoundStream) -> int | None:
        """Returns the first offset that can be read from an archive, None without one."""
        return await self._archives.first_offset(found)

    async def limit(self, found: FoundStream, start: int, limit_bytes: int) -> int:
        """Returns an offset such that the chunks from `start` on have about `limit_bytes` at most,
        or are one; of what is in an archive, the files have. Raises as `read` does."""
        while True:
            if start < found.state().first:
                archived = await self._archives.limit(found, start, limit_bytes)
                if archived is not None:
                    return archived
            state = check(found, start, None)
            if start == state.next_offset:
                return start
            limit = await found.stream.measure(start, limit_bytes)
            if limit is not None:
                return limit


def _damaged(found: FoundStream, chunks: StreamRead) -> RecordsDamaged:
    last = chunks.next_offset - 1
    return RecordsDamaged(
        f"stream '{found.name}' in vhost '{found.vhost}': the messages from offset {chunks.first} "
        f"to {last} are damaged on disk; skip_damaged=true leaves out what can't be read",
        field="start", value=str(chunks.first), members={"unreadable": [chunks.first, last]},
    )  # fmt: skip
