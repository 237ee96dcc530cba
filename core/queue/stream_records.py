"""Reads the records of a stream as they lie in the log, for readers outside of this process.

Only what is committed is read. The store looks for records on its worker's thread, so compaction
may have moved them, and retention dropped them, before it gets there: then it looks again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..message.queue_entry import MessageRange
from ..message.stream_read import RecordsWanted, StreamMeasure, StreamRead
from .stream import StreamQueue

if TYPE_CHECKING:
    from ..store.port import StreamRecords

CHUNKS_MAX: Final = 4_096
"""Chunks of a stream that one read visits."""
ROUNDS_MAX: Final = 64
"""Times so many that are measured: where each message is a chunk of its own, 262,144 of them."""
ATTEMPTS_MAX: Final = 8
"""Each finds what compaction has moved since the one before; a file that is missing is not found by
any."""


class StreamRecordReader:
    """Reads records of one stream. Every method calls `done` at once or in a later turn: with None
    if the message at `start` was dropped, or the queue deleted, meanwhile."""

    def __init__(self, queue: StreamQueue, records: StreamRecords) -> None:
        self._queue = queue
        self._log = queue.log
        self._records = records

    def read(
        self,
        start: int,
        end: int,
        limit_bytes: int,
        done: Callable[[StreamRead | None], None],
        *,
        skip_damaged: bool = False,
    ) -> None:
        """Reads whole records with the messages from `start` to `end - 1`, up to about
        `limit_bytes` but at least one. What can't be read ends the answer, or is all of it without
        bytes; with `skip_damaged` it is left out."""

        def attempt(number: int) -> None:
            wanted = self._wanted(start, end, limit_bytes)
            if wanted is None:
                done(None)
            elif number > ATTEMPTS_MAX:
                done(StreamRead(start, wanted.first_end))
            else:
                self._records.read(
                    wanted,
                    limit_bytes,
                    lambda found: attempt(number + 1) if found is None else done(found),
                    skip_damaged=skip_damaged,
                )

        attempt(1)

    def measure(self, start: int, limit_bytes: int, done: Callable[[int | None], None]) -> None:
        """Finds an offset such that the records from `start` on have at most `limit_bytes`, or
        are one. Of very many chunks some are measured in each turn, and not all."""
        at, left_bytes, rounds = start, limit_bytes, 0

        def measured(found: StreamMeasure | None) -> None:
            nonlocal at, left_bytes, rounds
            rounds += 1
            if found is None or (found.size_bytes > left_bytes and at > start):
                done(at if at > start else None)
                return
            at, left_bytes = found.end, left_bytes - found.size_bytes
            if found.is_full or rounds == ROUNDS_MAX or at >= self._log.committed:
                done(at)
            else:
                self._measure(at, left_bytes, measured)

        self._measure(at, left_bytes, measured)

    def _measure(
        self, start: int, limit_bytes: int, done: Callable[[StreamMeasure | None], None]
    ) -> None:
        """Measures the records of `CHUNKS_MAX` chunks at most, at least one record."""

        def attempt(number: int) -> None:
            wanted = self._wanted(start, self._log.committed, limit_bytes)
            if wanted is None:
                done(None)
            elif number > ATTEMPTS_MAX:
                done(StreamMeasure(wanted.first_end, 0, is_full=True))
            else:
                self._records.measure(
                    wanted,
                    limit_bytes,
                    lambda found: attempt(number + 1) if found is None else done(found),
                )

        attempt(1)

    def find_moment(self, wall_ms: int, done: Callable[[int], None]) -> None:
        """Finds the first message that arrived at `wall_ms` or later by the times that the records
        have; the end of what is committed if there is none. By binary search; what can't be read is
        passed over."""
        low, high = self._log.first, self._log.committed
        middle = low

        def found(read: StreamRead | None) -> None:
            nonlocal low, high
            if read is None:
                low = max(low, self._log.first)  # Retention has dropped some.
            elif not read.pieces or read.arrived_ms >= wall_ms:
                high = min(middle, read.first)
            else:
                low = read.next_offset
            step()

        def step() -> None:
            nonlocal middle
            if low >= high or self._queue.deleted:
                done(low)
                return
            middle = (low + high) // 2
            self.read(middle, high, 1, found, skip_damaged=True)

        step()

    def _wanted(self, start: int, end: int, limit_bytes: int) -> RecordsWanted | None:
        """Returns where to look; None if the message at `start` is not there."""
        log = self._log
        end = min(end, log.committed)
        if self._queue.deleted or not log.first <= start < end:
            return None
        contents = []
        size = 0
        for chunk in log.chunks.from_offset(start, CHUNKS_MAX):
            if chunk.offset >= end or size > limit_bytes:
                break
            contents.append((chunk.offset, chunk.content))
            if isinstance(chunk.content, MessageRange):
                size += chunk.size_bytes
        return RecordsWanted(self._queue.id, start, end, contents)
