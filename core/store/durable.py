"""The durable store: one append-only log for all queues.

What is appended gets its location at once and is submitted to the writer when the turn is over; the
location is all that memory needs to find it again. A commit number names a write group: it is
committed when the group and all before it are synced. A group is synced if somebody waits for it;
else after `SYNC_BYTES` or `SYNC_MS`, whichever comes first.
"""

from __future__ import annotations

import errno
import logging
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import NamedTuple

from ..clock import Clock, SystemClock
from ..message.batch import Batch, MemoryUsage, MessageRange, PagedOut, QueueEntry
from ..slices import Pause, Steps, run_slice
from . import small_records
from .checkpointer import Checkpointer
from .codec import encode_messages
from .compactor import Compactor
from .disk import Disk
from .paging import Paging
from .port import BEHIND_BYTES, Browsed, QueueIdentity, Split
from .quarantine import set_aside_files
from .record import FILE_HEADER_BYTES, HEAD_BYTES, Buffer, FileHeader, Flags, Kind
from .record_cache import RecordCache
from .recovery import KIND, Recovery, closing
from .reserve import Reserve
from .segment import Segment, segment_name
from .segment_part import SegmentPart
from .settled_set import SettledSet
from .settlements import ManySettled, Settlements
from .work import Worker
from .writer import Append, Footer, Roll, WriteGroup, Writer

logger = logging.getLogger(__name__)

MIB = 1024 * 1024
SEGMENT_BYTES = 64 * MIB
FIRST_SEGMENT_BYTES = MIB
SUBMIT_BYTES = 128 * 1024
SUBMIT_MS = 10
SYNC_BYTES = 16 * MIB
SYNC_MS = 5_000
FAST_MS, SLOW_MS = 4_000, 30_000
SEQUENCES_AHEAD = 2**40
"""Sequence numbers are reserved up to a ceiling that is in the log: most leave no other record."""
DEAD_CHECK_MS = 1_000
DEAD_BYTES, DEAD_SEGMENTS = 8 * MIB, 16
"""Bytes, or a number, of dead segments that bring a checkpoint forward, unless that would be larger
than what it frees."""


class DurableStore:
    """Implements `Store` on a disk.

    Opening it recovers the directory. Until `start` it writes and reads on the caller's thread, for
    tests and offline tools.

    Raises:
        ConfigError: the directory holds something else or was written by a newer Warren; nothing
            has been changed then.
    """

    def __init__(
        self,
        disk: Disk,
        *,
        clock: Clock | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        reserve_bytes: int = 0,
        on_failure: Callable[[OSError], None] = lambda _: None,
    ) -> None:
        self.memory = MemoryUsage()
        self.committed = 0
        self.refused = 0
        self.behind_bytes = 0
        self.behind_max_bytes = min(BEHIND_BYTES, reserve_bytes // 4 or BEHIND_BYTES)
        self._disk = disk
        self._clock = clock or SystemClock()
        self._callback: Callable[[], None] = lambda: None
        self._on_failure = on_failure
        recovery = Recovery(disk)
        state = recovery.run()
        self.is_damaged = bool(recovery.quarantined or recovery.unreadable or recovery.lost)
        self._unread = {**recovery.lost, **recovery.unreadable}
        self.store_id = recovery.store_id
        self.definitions = state.definitions
        self.segments = state.segments
        self.marks = state.marks
        self.priority_marks = state.priority_marks
        self._next_sequence = _first_sequence(state.sequence, self._clock)
        self._segment_max = segment_bytes
        self._worker = Worker()
        self._worker.failed = self._job_failed
        self._reserve = Reserve(disk, reserve_bytes)
        self._writer = Writer(disk, self._report_later, self._fail_later, self._reserve.give)
        self._paging = Paging(
            disk, self._worker, self._writer, self._clock, dict(state.marks), state.priority_marks
        )
        compactor = Compactor(disk, self._worker, self, self._paging.reader)
        self._checkpointer = Checkpointer(disk, self._worker, self, compactor, state.checkpoint)
        self._claimed: set[int] = set()
        self._unclaimed: set[int] = set()
        self._parts: dict[int, list[SegmentPart]] | None = None
        self._settling = Settlements()
        self.uncounted: set[ManySettled] = set()
        """Settled in the log, and still counted as unsettled in memory."""
        self._new_marks: dict[int, int] = {}
        self._mark_commit = 0
        self._closing: deque[_Closing] = deque()
        self._batch = WriteGroup(1, False)
        self._sync_requested = False
        self._failed = False
        self._stopped = False
        self._dead_checked_ms = 0
        self._settled_since_check = False
        self.sequence_ceiling = 0
        self._group: int | None = None
        self._depth = 0
        self._submitted_ms = self._synced_ms = self._clock.now_ms()
        self._rolled_ms = self._submitted_ms
        self._unsynced_bytes = 0
        self._segment_bytes = min(FIRST_SEGMENT_BYTES, segment_bytes)
        self._last_number = self.born = state.segment
        self._open = self._begin(state.segment)
        self._raise_ceiling()
        self.request()
        self._submit()
        self._checkpointer.begin()

    def flush(self) -> None:
        """Submits everything to be written and synced; before `start` it is when this returns."""
        self.request()
        self._submit()

    def start(self, post: Callable[[Callable[[], None]], None]) -> None:
        """Starts the threads that write and read; `post` brings their results back to the thread
        that calls the store."""
        self._worker.start(post)
        self._writer.start()

    def stop(self, delivered: Mapping[tuple[int, int | None], int] | None = None) -> None:
        """Writes what is pending and a last checkpoint, so that the next start has nothing to
        replay. `delivered` has the highest sequence number that consumers got of each durable
        queue, by its id and a priority, None for all of them."""
        if delivered is not None:
            self._mark_exactly(delivered)
        self._new_marks.clear()
        self._stopped = True
        self.request()
        self._submit()
        self._close_segment()
        self._batch.work.append(Roll())
        self.request()
        self._submit()
        self._writer.stop()
        self._worker.stop()
        for segment, footer, _ in self._closing:
            segment.end = max(segment.end, footer.end)
        if self._writer.error is not None:
            self.fail(self._writer.error)
        if not self._failed and not self._writer.is_stuck:
            self.sequence_ceiling = self._next_sequence
            self._checkpointer.finish(self.take_number())
        self._paging.close()

    def _mark_exactly(self, delivered: Mapping[tuple[int, int | None], int]) -> None:
        """Sets the marks to what was delivered; those of deleted queues are dropped."""
        there = {queue_id for queue_id, _ in delivered}
        old = self._paging.loader.old_priority_marks
        self.priority_marks = {key: mark for key, mark in old.items() if key[0] in there}
        for (queue_id, priority), sequence in delivered.items():
            if priority is None:
                self.marks[queue_id] = max(sequence, self._paging.loader.old_marks.get(queue_id, 0))
            else:
                key = queue_id, priority
                self.priority_marks[key] = max(sequence, old.get(key, 0))

    # -- the port: messages and definitions

    def reserve(self, count: int) -> int:
        first = self._next_sequence
        self._next_sequence += count
        return first

    def _raise_ceiling(self) -> None:
        self.sequence_ceiling = self._next_sequence + SEQUENCES_AHEAD
        self._push(Kind.START, 0, [small_records.encode_number(self.sequence_ceiling)])

    def append(
        self,
        batch: Batch,
        entries: Sequence[tuple[QueueIdentity, QueueEntry]],
        offsets: Sequence[tuple[int, int]] = (),
    ) -> int:
        buffers = encode_messages(batch, entries, self._clock.steady_ms(), offsets=offsets)
        segment, offset, size = self._push(Kind.MESSAGES, batch.sequence, buffers)
        batch.location = (segment.number, offset, size)
        special = batch.attributes.special
        for queue, entry in entries:
            part = segment.part(queue.id)
            ordinal = part.add(
                entry.sequence(0),
                entry.sequence(entry.count - 1),
                entry.count,
                offset,
                size,
                special,
            )
            part.entries[ordinal] = entry
            entry.settled_set = SettledSet(part, ordinal, entry.count)
        for queue_id, first in offsets:
            segment.part(queue_id).number(first)
        return self._batch.number

    def settle(self, queue: QueueIdentity, messages: MessageRange) -> None:
        self._settled_since_check = True
        self._settling.settle(queue.id, messages)

    def many_settled(self) -> ManySettled:
        return ManySettled(self)

    def settle_many(self, many: ManySettled) -> None:
        self._settled_since_check = True
        self.uncounted.add(many)
        self._settling.join(many.ranges)

    def discard(self, queue: QueueIdentity, paged_out: PagedOut) -> Steps:
        return self._discard(queue.id, self._paging.ranges.discard(paged_out))

    def _discard(self, queue_id: int, steps: Iterator[list[int] | Pause]) -> Steps:
        for step in steps:
            if isinstance(step, Pause):
                yield step
                continue
            self._settled_since_check = True
            self._settling.add(queue_id, step)
            yield None

    def delivered(self, queue: QueueIdentity, sequence: int) -> int:
        if self.marks.get(queue.id, 0) < sequence:
            self.marks[queue.id] = self._new_marks[queue.id] = sequence
            self._mark_commit = self._batch.number
        # An earlier one may not be committed yet.
        return self._mark_commit if self._mark_commit > self.committed else 0

    def define(self, key: bytes, value: bytes | None) -> int:
        if value is None:
            self.definitions.pop(key, None)
        else:
            self.definitions[key] = value
        self._push(Kind.DEFINITION, 0, [small_records.encode_definition(key, value)])
        return self._batch.number

    def recovered(
        self, queue: QueueIdentity, *, ranks: bool = False, in_order: bool = False
    ) -> Sequence[PagedOut]:
        self._claimed.add(queue.id)
        return self._paging.recovered.of(self._parts_of(queue), ranks=ranks, in_order=in_order)

    def next_offset(self, queue: QueueIdentity) -> int:
        return max((part.next_offset for part in self._parts_of(queue)), default=0)

    def _parts_of(self, queue: QueueIdentity) -> list[SegmentPart]:
        if self._parts is None:
            self._parts = parts_by_queue(self.segments.values())
        return self._parts.get(queue.id, [])

    def restored(self) -> None:
        held = {key for segment in self.segments.values() for key in segment.parts}
        self._unclaimed = held - self._claimed
        self._claimed.clear()
        self._parts = None
        for queue_id, count in self.quarantine.items():
            logger.error(
                "%d messages belong to no queue (queue id %d): its definition was lost; they are "
                "kept, see `warren repair`", count, queue_id,
            )  # fmt: skip

    @property
    def quarantine(self) -> Mapping[int, int]:
        counts = dict.fromkeys(self._unclaimed, 0)
        for segment in self.segments.values():
            for queue_id in counts.keys() & segment.parts.keys():
                counts[queue_id] += segment.parts[queue_id].unsettled
        return {queue_id: count for queue_id, count in counts.items() if count}

    @property
    def unreadable(self) -> Mapping[str, str]:
        reader = self._paging.reader
        found = {**reader.damaged, **self._unread, **reader.unreadable}
        return {segment_name(number): reason for number, reason in sorted(found.items())}

    @property
    def cache(self) -> RecordCache:
        return self._paging.reader.cache

    def set_aside_files(self) -> Mapping[str, int]:
        return set_aside_files(self._disk)

    def drop(self, queue: QueueIdentity) -> Iterator[None]:
        self._settled_since_check = True
        self._unclaimed.discard(queue.id)
        self._settling.forget(queue.id)
        self._new_marks.pop(queue.id, None)
        self.marks.pop(queue.id, None)
        parts = [segment.parts.pop(queue.id, None) for segment in self.segments.values()]
        cleared = [part.clear() for part in parts if part is not None]
        self._push(Kind.DROPPED, 0, [small_records.encode_number(queue.id)])
        return chain.from_iterable(cleared)

    @contextmanager
    def together(self) -> Iterator[None]:
        if not self._depth:
            self._write_settled()
            self._room(HEAD_BYTES)
            self._group = 0
        self._depth += 1
        is_whole = False
        try:
            yield
            is_whole = True
        finally:
            self._depth -= 1
            if not self._depth:
                self._write_settled()
                # A group without its last record is ignored after a crash.
                if self._group and is_whole:
                    self._push(Kind.END_OF_GROUP, 0, [], Flags.LAST)
                self._group = None

    def barrier(self) -> int:
        if self._batch.work or self._settling:
            return self._batch.number
        before = self._batch.number - 1
        return before if before > self.committed else 0

    # -- the port: commits

    def on_commit(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def request(self) -> None:
        self._sync_requested = True

    def turned(self) -> int | None:
        if self._stopped:
            return None
        self._worker.deliver()
        more = self._drop_indexes()
        now_ms = self._clock.now_ms()
        waits = bool(self._batch.work or self._settling or self._new_marks)
        if self._sync_requested:
            self._submit()
        elif waits and (
            self._batch.size >= SUBMIT_BYTES or now_ms - self._submitted_ms >= SUBMIT_MS
        ):
            self._submit()
            waits = False
        delays_ms = [self._check_dead_segments(now_ms), self._checkpointer.work()]
        if waits:
            delays_ms.append(SUBMIT_MS)
        if more:
            delays_ms.append(1)
        if self._unsynced_bytes and not self._sync_requested:
            left_ms = self._synced_ms + SYNC_MS - now_ms
            if left_ms <= 0:
                self.request()
            delays_ms.append(max(1, left_ms))
        return min((delay_ms for delay_ms in delays_ms if delay_ms is not None), default=None)

    def _check_dead_segments(self, now_ms: int) -> int | None:
        """Closes the open segment early if there are many dead ones: a checkpoint removes them."""
        if now_ms - self._dead_checked_ms < DEAD_CHECK_MS:
            return DEAD_CHECK_MS if self._settled_since_check else None
        self._dead_checked_ms, self._settled_since_check = now_ms, False
        self._reserve.take()
        dead = [held.end for held in self.segments.values() if held.sealed and held.is_dead]
        is_much = sum(dead) > max(DEAD_BYTES, self._checkpointer.worth_bytes)
        is_pressing = self.is_short or is_much or len(dead) > DEAD_SEGMENTS
        if dead and is_pressing and self._checkpointer.is_idle:
            self._roll()
        return DEAD_CHECK_MS if is_pressing else None

    @property
    def is_short(self) -> bool:
        """Whether the disk is so full that the reserve is used."""
        return self._reserve.is_given

    # -- the port: paging

    def fetch(self, batch: Batch, ready: Callable[[], None]) -> None:
        self._paging.batches.fetch(batch, ready)

    def page_in(
        self,
        paged_out: PagedOut,
        ready: Callable[[Sequence[MessageRange]], None],
        *,
        is_urgent: bool = True,
    ) -> None:
        self._paging.loader.memory = self.memory
        self._paging.page_in.page_in(paged_out, ready, is_urgent=is_urgent)

    def hurry(self, paged_out: PagedOut) -> None:
        self._paging.page_in.hurry(paged_out)

    def browse(
        self, paged_out: PagedOut, position: int, ready: Callable[[Browsed | None], None]
    ) -> None:
        self._paging.loader.memory = self.memory
        self._paging.browser.browse(paged_out, position, ready)

    def size_of(self, entry: QueueEntry) -> int:
        return self._paging.ranges.size_of(entry)

    def weigh(self, paged_out: PagedOut) -> Generator[Pause, None, int]:
        return self._paging.ranges.weigh(paged_out)

    def split(self, paged_out: PagedOut, size_bytes: int) -> Generator[Pause, None, Split | None]:
        return self._paging.ranges.split(paged_out, size_bytes)

    @property
    def leaving_bytes(self) -> int:
        return self._paging.batches.leaving_bytes

    def evict(self, batch: Batch) -> bool:
        return self._paging.batches.evict(batch)

    def page_out(
        self, messages: MessageRange, before: PagedOut | None, *, in_order: bool = False
    ) -> PagedOut | None:
        return self._paging.ranges.page_out(messages, before, in_order=in_order)

    def forget(self, segment: int) -> None:
        """Closes the file of a dead segment, which is about to be removed."""
        self._paging.reader.forget(segment)

    # -- writing

    def _push(
        self, kind: Kind, sequence: int, buffers: list[Buffer], flags: Flags = Flags.NONE
    ) -> tuple[Segment, int, int]:
        """Appends a record to the write group; returns its segment, offset and size."""
        size = HEAD_BYTES + sum(map(len, buffers))
        segment = self._room(size)
        if self._group is not None:
            flags |= Flags.GROUPED | (Flags.NONE if self._group else Flags.FIRST)
            self._group += 1
        offset = segment.end
        segment.end += size
        self._batch.work.append(Append(offset, kind, flags, sequence, buffers))
        self._batch.size += size
        self.behind_bytes += size
        return segment, offset, size

    def _room(self, size: int) -> Segment:
        """The open segment, or a new one if it is full. A group stays in one."""
        segment = self._open
        room = max(self._segment_bytes, self._checkpointer.worth_bytes)
        full = segment.end + size > room and segment.end > FILE_HEADER_BYTES
        if full and self._group is None:
            self._roll()
        return self._open

    def _roll(self) -> None:
        self._close_segment()
        self._segment_bytes = self._next_segment_bytes()
        self._open = self._begin(self.take_number())
        self._checkpointer.begin()

    def take_number(self) -> int:
        """Returns a number for a new file, never used before."""
        self._last_number += 1
        return self._last_number

    def roll(self) -> None:
        """Goes on in a new segment after a compaction; a checkpoint follows."""
        self._parts = None
        self._roll()

    def _next_segment_bytes(self) -> int:
        """The size of the next segment: twice the last if that filled fast, half if slowly."""
        now_ms = self._clock.now_ms()
        took_ms, self._rolled_ms = now_ms - self._rolled_ms, now_ms
        size = self._segment_bytes
        if took_ms < FAST_MS:
            size *= 2
        elif took_ms > SLOW_MS:
            size = max(FIRST_SEGMENT_BYTES, size // 2)
        return min(size, self._segment_max)

    def _close_segment(self) -> None:
        """Completes the open segment; the writer encodes its index."""
        segment = self._open
        self._write_settled(segment)
        parts = list(segment.parts.values())
        footer = Footer(lambda at: closing(parts, at))
        self._batch.work.append(footer)
        segment.sealed = True
        self._closing.append(_Closing(segment, footer, _free_indexes(segment, parts)))

    def _drop_indexes(self) -> bool:
        """Frees the indexes of a segment whose file has them now. Does a slice; True if there are
        more."""
        if not self._closing:
            return False
        segment, footer, steps = self._closing[0]
        if not footer.end or not self._writer.has_written(segment.number + 1, 0):
            return False
        segment.end = footer.end
        if not run_slice(steps):
            self._closing.popleft()
        return bool(self._closing)

    def _append_to(self, segment: Segment, kind: Kind, buffers: list[Buffer]) -> None:
        size = HEAD_BYTES + sum(map(len, buffers))
        self._batch.work.append(Append(segment.end, kind, Flags.NONE, 0, buffers))
        self._batch.size += size
        self.behind_bytes += size
        segment.end += size

    def _begin(self, number: int) -> Segment:
        segment = self.segments[number] = Segment(number)
        segment.end = FILE_HEADER_BYTES
        header = FileHeader(KIND, self.store_id, number).encode()
        self._batch.work.append(Roll(number, segment.name, header, self._segment_bytes))
        return segment

    @property
    def open_number(self) -> int:
        return self._open.number

    def _write_settled(self, segment: Segment | None = None) -> None:
        if not self._settling:
            return
        body = self._settling.take()
        if segment is None:
            self._push(Kind.SETTLED, 0, [body])
        else:
            self._append_to(segment, Kind.SETTLED, [body])

    def _submit(self) -> None:
        """Submits the write group to the writer, with a sync if somebody waits."""
        self._write_settled()
        if self._next_sequence + SEQUENCES_AHEAD // 2 > self.sequence_ceiling:
            self._raise_ceiling()
        if self._new_marks:
            marks, self._new_marks = self._new_marks, {}
            self._push(Kind.DELIVERED, 0, [small_records.encode_marks(marks)])
        group = self._batch
        self._unsynced_bytes += group.size
        self._submitted_ms = self._clock.now_ms()
        group.synced = self._sync_requested or self._unsynced_bytes >= SYNC_BYTES
        self._batch = WriteGroup(group.number + 1, False)
        self._sync_requested = False
        if group.synced:
            self._unsynced_bytes = 0
            self._synced_ms = self._submitted_ms
        self._writer.put(group)

    def _report_later(self, committed: int, refused: int, freed: int) -> None:
        self._worker.post(lambda: self._report(committed, refused, freed))

    def _report(self, committed: int, refused: int, freed: int) -> None:
        if self._failed:
            return
        self.committed = max(self.committed, committed)
        self.refused = max(self.refused, refused)
        self.behind_bytes -= freed
        self._callback()

    def _fail_later(self, error: OSError) -> None:
        self._worker.post(lambda: self.fail(error))

    def _job_failed(self, error: BaseException) -> None:
        """Fails the store after an error of a job."""
        if not isinstance(error, OSError):
            logger.error("internal error beside the log", exc_info=error)
            error = OSError(errno.EIO, f"internal error: {error!r}")
        self.fail(error)

    def fail(self, error: OSError) -> None:
        """Stops the store for good: everybody who waits is refused."""
        if self._failed:
            return
        self._failed = True
        self._writer.is_dead = True
        logger.critical("the log can't be written any more: %s; nothing is confirmed", error)
        self.refused = sys.maxsize
        self._callback()
        self._on_failure(error)


class _Closing(NamedTuple):
    """A complete segment; `steps` are done when its footer is written."""

    segment: Segment
    footer: Footer
    steps: Iterator[None]


def _free_indexes(segment: Segment, parts: list[SegmentPart]) -> Iterator[None]:
    """Frees the indexes of a segment, and its parts without unsettled messages."""
    while parts:
        part = parts.pop()
        part.index = None
        if not part.unsettled:
            segment.parts.pop(part.queue_id, None)
        yield


def parts_by_queue(segments: Iterable[Segment]) -> dict[int, list[SegmentPart]]:
    found: dict[int, list[SegmentPart]] = {}
    for segment in segments:
        for part in segment.parts.values():
            found.setdefault(part.queue_id, []).append(part)
    return found


def _first_sequence(known: int, clock: Clock) -> int:
    """A sequence number above all that were ever reserved, also if the clock was set back."""
    return max(int(clock.wall_s() * 1e9), known + 1)
