"""The durable store: one append-only log for all queues."""

from __future__ import annotations

import errno
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import Final

from ..clock import Clock, SystemClock
from ..message.batch import Batch, MemoryUsage
from ..message.queue_entry import MessageRange, PagedOut, QueueEntry
from ..slices import Pause, Steps
from . import small_records
from .checkpointer import Checkpointer
from .compactor import Compactor
from .cut import LogCut
from .disk import Disk
from .encoder import encode_messages
from .location import RecordLocation
from .log import SEGMENT_BYTES, SUBMIT_MS, Log
from .paging import Paging
from .port import QueueIdentity, Store
from .progress import BEHIND_BYTES, CommitProgress
from .record import RecordKind
from .recovered_messages import RecoveredMessages
from .recovery import Recovery
from .reserve import Reserve
from .settled_set import RecordSettledSet
from .settlements import ManyLogged, Settlements
from .stored_marks import StoredMarks
from .work import Worker
from .writer import Writer

logger = logging.getLogger(__name__)

SEQUENCES_AHEAD: Final = 2**40
"""Sequence numbers are reserved up to a ceiling that is logged: most are not in the log otherwise.
"""


class DurableStore(Store):
    """Implements `Store` on a disk.

    Opening it recovers the directory. Until `start` it writes and reads on the caller's thread, for
    tests and offline tools.

    Raises:
        ConfigError: the directory has foreign files or was written by a newer Warren; nothing has
            been changed.
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
        self._clock = clock or SystemClock()
        self._on_failure = on_failure
        recovery = Recovery(disk)
        self._state = state = recovery.run()
        super().__init__(_first_sequence(state.sequence, self._clock))
        self.memory = MemoryUsage()
        self.definitions = state.definitions
        self.progress = CommitProgress(min(BEHIND_BYTES, reserve_bytes // 4 or BEHIND_BYTES))
        self.worker = Worker()
        self.worker.failed = self._job_failed
        self._reserve = Reserve(disk, reserve_bytes)
        self.writer = Writer(disk, self._report_later, self._fail_later, self._reserve.use)
        self.write_metrics = self.writer.metrics
        self._settlements = Settlements()
        self.marks = StoredMarks(state.marks, state.priority_marks)
        self.paging = Paging(disk, self.worker, self.writer, self._clock, self.marks, self.memory)
        self.cache = self.paging.reader.cache
        self.batches = self.paging.batches
        self.ranges = self.paging.ranges
        self.page_in = self.paging.page_in
        self.browser = self.paging.browser
        self.records = self.paging.records
        self.store_id = state.store_id
        self.log = Log(
            self.writer, self._clock, self.progress, self._settlements, self.marks, state.segments,
            state.store_id, segment_bytes,
        )  # fmt: skip
        self.recovered = self._recovered = RecoveredMessages(
            disk, self.log, self.paging, recovery.damage
        )
        compactor = Compactor(disk, self.worker, self.log, self.paging.reader, self._clock)
        self._disk = disk
        self.checkpointer = Checkpointer(
            disk, self.worker, self.log, state, self._reserve, self.paging.reader, compactor,
            self._clock,
        )  # fmt: skip
        self.has_failed = False
        self._stopped = False
        self.log.open(state.segment)
        self._raise_ceiling()
        self.flush()
        self.log.on_roll = self.checkpointer.begin
        self.checkpointer.begin()

    def flush(self) -> None:
        """Submits everything to be written and synced; before `start` this is done on return."""
        self.request()
        self._submit()

    def start(self, post: Callable[[Callable[[], None]], None]) -> None:
        """Starts the threads that write and read; `post` brings their results back to the thread
        that calls the store."""
        self.worker.start(post)
        self.writer.start()

    def stop(self, delivered: Mapping[tuple[int, int | None], int] | None = None) -> None:
        """Writes pending work and a last checkpoint, so that the next start has nothing to replay.
        `delivered` has the highest sequence number that was delivered of each durable queue, by its
        id and a priority, None for all priorities."""
        if delivered is not None:
            self.marks.set_exactly(delivered)
        self.marks.new.clear()
        self._stopped = True
        self.flush()
        self.log.end()
        self.writer.stop()
        self.worker.stop()
        self.log.closing.finish()
        if self.writer.error is not None:
            self.fail(self.writer.error)
        if not self.has_failed and not self.writer.is_stuck:
            self._state.sequence = self._next_sequence
            self.checkpointer.finish(self.log.take_number())
        self.paging.close()

    # -- messages and definitions

    def append(
        self,
        batch: Batch,
        entries: Sequence[tuple[QueueIdentity, QueueEntry]],
        offsets: Sequence[tuple[int, int]] = (),
    ) -> int:
        log = self.log
        buffers = encode_messages(batch, entries, self._clock.steady_ms(), offsets=offsets)
        segment, offset, size = log.push(RecordKind.MESSAGES, batch.sequence, buffers)
        batch.location = RecordLocation(segment.number, offset, size)
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
            entry.settled_set = RecordSettledSet(part, ordinal, entry.count)
        for queue_id, first in offsets:
            segment.part(queue_id).number(first)
        return log.number

    def settle(self, queue: QueueIdentity, messages: MessageRange) -> None:
        self._settlements.settle(queue.id, messages)

    def persistent_count(self, queue: QueueIdentity) -> int:
        key, segments = queue.id, self.log.segments.values()
        return sum([one.parts[key].unsettled for one in segments if key in one.parts])

    def many_settled(self) -> ManyLogged:
        return ManyLogged(self._settlements)

    def discard(self, queue: QueueIdentity, paged_out: PagedOut) -> Steps:
        return self._discard(queue.id, self.paging.ranges.discard(paged_out))

    def _discard(self, queue_id: int, steps: Iterator[list[int] | Pause]) -> Steps:
        for step in steps:
            if isinstance(step, Pause):
                yield step
                continue
            self._settlements.add(queue_id, step)
            yield None

    def delivered(self, queue: QueueIdentity, sequence: int) -> int:
        marks = self.marks
        if marks.set(queue.id, sequence):
            marks.commit = self.log.number
        # An earlier mark may not be committed yet.
        return marks.commit if marks.commit > self.progress.committed else 0

    def drop(self, queue: QueueIdentity) -> Iterator[None]:
        self._recovered.forget(queue.id)
        self._settlements.forget(queue.id)
        self.marks.forget(queue.id)
        segments = self.log.segments.values()
        parts = [segment.parts.pop(queue.id, None) for segment in segments]
        cleared = [part.clear() for part in parts if part is not None]
        self.log.push(RecordKind.DROPPED, 0, [small_records.encode_number(queue.id)])
        return chain.from_iterable(cleared)

    def define(self, key: bytes, value: bytes | None) -> int:
        if value is None:
            self.definitions.pop(key, None)
        else:
            self.definitions[key] = value
        self.log.push(RecordKind.DEFINITION, 0, [small_records.encode_definition(key, value)])
        return self.log.number

    # -- commits

    def together(self) -> AbstractContextManager[None]:
        return self.log.together()

    def barrier(self) -> int:
        return self.log.barrier()

    def request(self) -> None:
        self.log.request()

    def turned(self) -> int | None:
        if self._stopped:
            return None
        self.worker.deliver()
        log, checkpointer = self.log, self.checkpointer
        more = log.closing.free()
        now_ms = self._clock.now_ms()
        has_pending = log.has_pending
        if log.sync_requested:
            self._submit()
        elif has_pending and log.is_due(now_ms):
            self._submit()
            has_pending = False
        delays_ms = [
            checkpointer.check_dead_segments(now_ms),
            checkpointer.work(),
            SUBMIT_MS if has_pending else None,
            1 if more else None,
            log.sync_ms(now_ms),
        ]
        return min((delay_ms for delay_ms in delays_ms if delay_ms is not None), default=None)

    def cut(self) -> LogCut:
        """Returns a cut at this moment, committed with `barrier`; not within `together`."""
        return LogCut(self._disk, self.log, self.checkpointer)

    @property
    def is_short(self) -> bool:
        return self._reserve.is_used

    def _submit(self) -> None:
        if self._next_sequence + SEQUENCES_AHEAD // 2 > self._state.sequence:
            self._raise_ceiling()
        self.log.submit()

    def _raise_ceiling(self) -> None:
        self._state.sequence = self._next_sequence + SEQUENCES_AHEAD
        self.log.push(RecordKind.START, 0, [small_records.encode_number(self._state.sequence)])

    # -- results of the threads

    def _report_later(self, committed: int, refused: int, freed: int) -> None:
        self.worker.post(lambda: self._report(committed, refused, freed))

    def _report(self, committed: int, refused: int, freed: int) -> None:
        if not self.has_failed:
            self.progress.report(committed, refused, freed)

    def _fail_later(self, error: OSError) -> None:
        self.worker.post(lambda: self.fail(error))

    def _job_failed(self, error: BaseException) -> None:
        """Fails the store after an error of a job."""
        if not isinstance(error, OSError):
            logger.error("internal error in a job of the store", exc_info=error)
            error = OSError(errno.EIO, f"internal error: {error!r}")
        self.fail(error)

    def fail(self, error: OSError) -> None:
        """Stops the store for good: all pending commits are refused."""
        if self.has_failed:
            return
        self.has_failed = True
        self.writer.is_dead = True
        logger.critical("writing to the log failed: %s; no further message is confirmed", error)
        self.progress.report(0, sys.maxsize, 0)
        self._on_failure(error)


def _first_sequence(known: int, clock: Clock) -> int:
    """Returns a sequence number above all that were reserved before, even with a clock set back."""
    return max(int(clock.wall_s() * 1e9), known + 1)
