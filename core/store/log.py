"""The end of the log: the open segment, and the write group that is submitted next.

A record gets its location when it is appended, and is submitted to the writer at the end of the
turn. A commit number is the number of a write group: it is committed when the group and all before
it are synced. A group is synced if a sync was requested, otherwise after `SYNC_BYTES` or `SYNC_MS`,
whichever comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ..clock import Clock
from .footer import ClosingSegments
from .progress import CommitProgress
from .record import FILE_HEADER_BYTES, HEAD_BYTES, KIND_LOG, Buffer, FileHeader, Flags, RecordKind
from .segment import Segment
from .settlements import Settlements
from .stored_marks import StoredMarks
from .writer import Append, Roll, WriteGroup, Writer

MIB: Final = 1024 * 1024
SEGMENT_BYTES: Final = 64 * MIB
FIRST_SEGMENT_BYTES: Final = MIB
SUBMIT_BYTES: Final = 128 * 1024
SUBMIT_MS: Final = 10
SYNC_BYTES: Final = 16 * MIB
SYNC_MS: Final = 5_000
FAST_MS: Final = 4_000
SLOW_MS: Final = 30_000


class Log:
    """Appends records to the open segment. `segments` has all segments of the log, by number."""

    def __init__(
        self,
        writer: Writer,
        clock: Clock,
        progress: CommitProgress,
        settlements: Settlements,
        marks: StoredMarks,
        segments: dict[int, Segment],
        store_id: bytes,
        segment_bytes: int,
    ) -> None:
        self.segments = segments
        self.store_id = store_id
        self.progress = progress
        self.settlements = settlements
        self.marks = marks
        self.closing = ClosingSegments(writer, clock)
        self.room_bytes = 0
        """Segments are not closed before they have this size, even if the segment size is smaller.
        """
        self.on_roll: Callable[[], None] = _nothing
        self._writer = writer
        self._clock = clock
        self._group = WriteGroup(1)
        self.sync_requested = False
        self._grouped: int | None = None
        """The number of records in the open group of records; None outside of `together`."""
        self._depth = 0
        self._unsynced_bytes = 0
        self._submitted_ms = self._synced_ms = self._rolled_ms = clock.now_ms()
        self._segment_max = segment_bytes
        self._segment_bytes = min(FIRST_SEGMENT_BYTES, segment_bytes)
        self._last_number = 0

    def open(self, number: int) -> None:
        """Begins the first segment of this process."""
        self._last_number = number
        self._open = self._begin(number)

    @property
    def number(self) -> int:
        """The commit number of records that are appended now."""
        return self._group.number

    @property
    def open_number(self) -> int:
        """The number of the open segment."""
        return self._open.number

    # -- appending

    def push(
        self, kind: RecordKind, sequence: int, buffers: list[Buffer], flags: Flags = Flags.NONE
    ) -> tuple[Segment, int, int]:
        """Appends a record; returns its segment, offset and size."""
        size = HEAD_BYTES + sum(map(len, buffers))
        segment = self._room(size)
        if self._grouped is not None:
            flags |= Flags.GROUPED | (Flags.NONE if self._grouped else Flags.FIRST)
            self._grouped += 1
        offset = segment.end
        segment.end += size
        group = self._group
        group.work.append(Append(offset, kind, flags, sequence, buffers))
        group.size += size
        self.progress.behind_bytes += size
        return segment, offset, size

    def _room(self, size: int) -> Segment:
        """Returns the open segment, or a new one if it is full. A group is never split."""
        segment = self._open
        room = max(self._segment_bytes, self.room_bytes)
        if segment.end + size > room and segment.end > FILE_HEADER_BYTES and self._grouped is None:
            self.roll()
        return self._open

    @contextmanager
    def together(self) -> Iterator[None]:
        """Makes everything that is appended and settled inside atomic."""
        if not self._depth:
            self._push_settled()
            self._room(HEAD_BYTES)
            self._grouped = 0
        self._depth += 1
        is_whole = False
        try:
            yield
            is_whole = True
        finally:
            self._depth -= 1
            if not self._depth:
                self._push_settled()
                # A group without its last record is ignored after a crash.
                if self._grouped and is_whole:
                    self.push(RecordKind.END_OF_GROUP, 0, [], Flags.LAST)
                self._grouped = None

    def _push_settled(self) -> None:
        if self.settlements:
            self.push(RecordKind.SETTLED, 0, [self.settlements.take()])

    # -- segments

    def roll(self) -> None:
        """Completes the open segment and opens a new one."""
        self.close_segment()
        self._segment_bytes = self._next_segment_bytes()
        self._open = self._begin(self.take_number())
        self.on_roll()

    def take_number(self) -> int:
        """Returns a number for a new file, never used before."""
        self._last_number += 1
        return self._last_number

    def _begin(self, number: int) -> Segment:
        segment = self.segments[number] = Segment(number)
        segment.end = FILE_HEADER_BYTES
        header = FileHeader(KIND_LOG, self.store_id, number).encode()
        self._group.work.append(Roll(number, segment.name, header, self._segment_bytes))
        return segment

    def _next_segment_bytes(self) -> int:
        """Returns the size of the next segment: twice the last one's if that was filled fast, half
        if slowly."""
        now_ms = self._clock.now_ms()
        took_ms, self._rolled_ms = now_ms - self._rolled_ms, now_ms
        size = self._segment_bytes
        if took_ms < FAST_MS:
            size *= 2
        elif took_ms > SLOW_MS:
            size = max(FIRST_SEGMENT_BYTES, size // 2)
        return min(size, self._segment_max)

    def close_segment(self) -> None:
        """Completes the open segment; the writer encodes its index."""
        segment, group = self._open, self._group
        if self.settlements:
            body = self.settlements.take()
            size = HEAD_BYTES + len(body)
            group.work.append(Append(segment.end, RecordKind.SETTLED, Flags.NONE, 0, [body]))
            group.size += size
            self.progress.behind_bytes += size
            segment.end += size
        group.work.append(self.closing.add(segment))

    def end(self) -> None:
        """Completes the last segment of this process and submits all."""
        self.close_segment()
        self._group.work.append(Roll())
        self.request()
        self.submit()

    # -- submitting

    def request(self) -> None:
        """Requests a sync of everything that was appended so far."""
        self.sync_requested = True

    def barrier(self) -> int:
        """Returns a commit number that covers everything so far; 0 if all of it is committed."""
        group = self._group
        if group.work or self.settlements:
            return group.number
        before = group.number - 1
        return before if before > self.progress.committed else 0

    @property
    def has_pending(self) -> bool:
        """Whether there is something to submit."""
        return bool(self._group.work or self.settlements or self.marks.new)

    def is_due(self, now_ms: int) -> bool:
        """Whether pending work is to be submitted now, though no sync was requested."""
        return self._group.size >= SUBMIT_BYTES or now_ms - self._submitted_ms >= SUBMIT_MS

    def submit(self) -> None:
        """Submits the write group to the writer, with a sync if one was requested or is due."""
        self._push_settled()
        if self.marks.new:
            self.push(RecordKind.DELIVERED, 0, [self.marks.take()])
        group = self._group
        self._unsynced_bytes += group.size
        self._submitted_ms = self._clock.now_ms()
        group.synced = self.sync_requested or self._unsynced_bytes >= SYNC_BYTES
        self._group = WriteGroup(group.number + 1)
        self.sync_requested = False
        if group.synced:
            self._unsynced_bytes = 0
            self._synced_ms = self._submitted_ms
        self._writer.put(group)

    def sync_ms(self, now_ms: int) -> int | None:
        """Returns in how many milliseconds written records have to be synced, None if that is not
        necessary; requests the sync if it is due."""
        if not self._unsynced_bytes or self.sync_requested:
            return None
        left_ms = self._synced_ms + SYNC_MS - now_ms
        if left_ms <= 0:
            self.request()
        return max(1, left_ms)


def _nothing() -> None:
    """Does nothing."""
