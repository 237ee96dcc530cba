"""Stream queues: messages are not removed when they are consumed; each consumer reads at its own
offset.

All messages are kept on disk, transient ones too, and delivered once they are there. An ack gives
credit and nothing else, and so do reject and requeue. Deliveries carry the header
`x-stream-offset`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, ClassVar, Final

from ..clock import wall_ms
from ..definitions.archives import ArchiveReport
from ..errors import ConnectionFault, precondition_failed
from ..message.batch import Batch
from ..message.equivalence import resource
from ..message.queue_entry import MessageRange, PagedOut, QueueEntry
from .archives import ArchiveProgress
from .consumer import Consumer
from .cursor import Cursor, Search
from .queue import Queue
from .readers import ReaderRing, StreamReader
from .retention import Retention
from .rules import PLAIN, Rules
from .stream_log import StreamLog
from .stream_offsets import OffsetHeaders, placeholder
from .stream_range import at_most, matching
from .stream_spec import ArrivedSince, MaxAge, read_filter, read_start

if TYPE_CHECKING:
    from ..store.port import ManySettled

OFFSET_HEADER: Final = b"x-stream-offset"
QUIET_MS: Final = 60_000
"""The least time between two warnings about one stream."""

logger = logging.getLogger(__name__)


class StreamQueue(Queue):
    """A queue whose messages are in a `StreamLog`, until retention drops them."""

    __slots__ = ("_offset_headers", "_quiet_until_ms", "_retention", "archives", "log")

    persists_all = True
    in_order = True
    counts_as_backlog = False
    header: ClassVar[bytes] = OFFSET_HEADER

    def _initialise(self) -> None:
        self.log = StreamLog(self, self._broker)
        self.log.on_commit = self._committed
        self._retention = Retention(self.log, self._broker, self._retain)
        self._offset_headers = OffsetHeaders(self.header, self._broker.store.memory)
        self.archives = ArchiveProgress(self._broker, self.id)
        self._quiet_until_ms = 0
        self._set_floor()
        self._broker.persisting_queues += 1

    def _committed(self) -> None:
        if isinstance(self.ring, ReaderRing):
            self.ring.resume_readers()
            self.wake_up()

    def wake_up(self) -> None:
        """Has the queue dispatched: there is something to read or to deliver."""
        self._broker.wake(self)
        self._broker.on_work()

    # -- contents

    @property
    def ready_count(self) -> int:
        return self.log.end - self.log.first

    @property
    def next_offset(self) -> int:
        return self.log.end

    @property
    def highest_delivered(self) -> dict[tuple[int, int | None], int]:
        return {(self.id, None): 0}

    def refuses(self, message: Batch) -> bool:
        return False

    def enqueue(self, entry: QueueEntry) -> None:
        self.log.append(entry)
        self._retain()

    def recover(self, paged_out_ranges: Sequence[PagedOut | MessageRange]) -> None:
        self.log.recover(paged_out_ranges)
        self._retain()

    # -- dispatch to consumers

    def dequeue(self, limit: int) -> MessageRange | None:
        """Returns None: a stream does not support basic.get."""
        return None

    def when_head_ready(self, action: Callable[[], None]) -> None:
        action()

    def check_get(self) -> None:
        raise ConnectionFault(540, f"basic.get is not supported by stream {self._where}")

    def check_purge(self) -> None:
        raise ConnectionFault(540, f"queue.purge is not supported by stream {self._where}")

    def check_consumer(self, consumer: Consumer) -> None:
        if consumer.no_ack:
            raise ConnectionFault(
                540, f"no_ack consumers are not supported by stream {self._where}"
            )
        if not consumer.prefetch:  # One of the whole channel does not count, as in RabbitMQ.
            raise precondition_failed(
                f"consumer prefetch count is not set for stream {self._where}: basic.qos first"
            )
        read_start(consumer.arguments)
        read_filter(consumer.arguments)

    @property
    def _where(self) -> str:
        return resource("queue", self.name, self.vhost)

    def add_consumer(self, consumer: Consumer) -> None:
        ring = self.ring
        if not isinstance(ring, ReaderRing):
            ring = self.ring = ReaderRing()
        reader = StreamReader(consumer, read_filter(consumer.arguments))
        ring.add_reader(reader)
        if consumer.exclusive:
            self.exclusive_consumer = consumer
        self._start_reader(reader)

    def detach_consumer(self, consumer: Consumer) -> None:
        super().detach_consumer(consumer)
        if self.ring is None or not self.ring.members:
            self._offset_headers.clear()

    def _start_reader(self, reader: StreamReader) -> None:
        """Starts reading at the offset that the consumer asks for, or at the oldest message."""
        log, consumer = self.log, reader.consumer
        start = read_start(consumer.arguments)

        def ready() -> None:
            # The cursor has this function: with the reader in it they would be a cycle.
            ring = self.ring
            if isinstance(ring, ReaderRing) and consumer in ring.readers:
                ring.schedule(ring.readers[consumer])
                self.wake_up()

        def found(offset: int) -> None:
            if isinstance(self.ring, ReaderRing) and consumer in self.ring.readers:
                reader.cursor = Cursor(
                    log, self._broker.store, offset, ready, shared=self.ring.read_ahead
                )
                ready()

        if isinstance(start, ArrivedSince | MaxAge):
            Search(log, self._broker.store, self._moment(start), found).step()
        elif isinstance(start, int):
            found(max(log.first, log.end + start if start < 0 else start))
        else:
            found({"first": log.first, "last": log.last_chunk_offset(), "next": log.end}[start])

    def _moment(self, start: ArrivedSince | MaxAge) -> int:
        now_ms = self._broker.now_ms
        if isinstance(start, MaxAge):
            return now_ms - start.ms
        return now_ms + start.wall_ms - wall_ms(self._broker.clock)

    @property
    def has_ready_consumer(self) -> bool:
        return self.ring is not None and not self.is_paused and self.ring.can_take_one()

    def _resume_dispatch(self) -> None:
        super()._resume_dispatch()
        self.log.notify_watchers()

    def dispatch(self, budget: int) -> bool:
        ring = self.ring
        if not isinstance(ring, ReaderRing) or self.is_paused:
            return False
        share = max(1, budget // max(1, len(ring.scheduled)))
        while ring.scheduled and budget > 0:
            budget -= 1 + self._serve(ring, ring.pop_next(), min(share, budget))
        if len(ring.at_end) == len(ring.members):
            self._offset_headers.clear()
        return bool(ring.scheduled)

    def _serve(self, ring: ReaderRing, reader: StreamReader, limit: int) -> int:
        """Reads up to `limit` messages for one consumer; returns how many were read."""
        consumer, cursor = reader.consumer, reader.cursor
        read_count = 0
        while cursor is not None:
            if read_count >= limit:
                ring.schedule(reader)
                break
            credit = consumer.credit()
            if credit <= 0:
                consumer.open = False
                break
            messages = cursor.next()
            if messages is None:
                if not cursor.is_reading:
                    ring.at_end[reader] = None
                break
            passed, part = matching(at_most(messages, limit - read_count), reader.filter, credit)
            offset = cursor.offset + part.low - messages.low
            cursor.offset += passed
            read_count += passed
            if part.count:
                self._deliver(consumer, part, offset)
        return read_count

    def _deliver(self, consumer: Consumer, messages: MessageRange, offset: int) -> None:
        self.unacked_count += messages.count
        rewritten = self._offset_headers.add(messages, offset, consumer.prefetch)
        consumer.session.deliver(consumer, placeholder(messages), rewritten)

    # -- settling: gives credit, removes nothing

    def settle(self, messages: MessageRange) -> None:
        self.unacked_count -= messages.high - messages.low

    def note_settled(self, messages: MessageRange, many: ManySettled) -> None:
        """Does nothing: no message is removed."""

    def count_settled(self, messages: MessageRange, many: ManySettled) -> None:
        self.settle(messages)

    def begin_requeue(self, messages: MessageRange, *, failed: bool = True) -> list[MessageRange]:
        self.settle(messages)
        return []

    def finish_requeue(self, messages: MessageRange) -> None:
        """Does nothing: no message is removed."""

    def requeuing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def return_undelivered(self, messages: MessageRange) -> None:
        self.settle(messages)

    def reject(self, messages: MessageRange) -> None:
        self.settle(messages)

    def purge(self, done: Callable[[], None] = lambda: None) -> int:
        """Drops everything when the queue is deleted; clients are refused (`check_purge`)."""
        purged = self.ready_count
        self.log.clear()
        self._offset_headers.clear()
        if self.deleted:
            self._broker.persisting_queues -= 1
            self._retention.end()
            self.log.notify_watchers()
        done()
        return purged

    # -- retention

    def apply(self, rules: Rules | None) -> None:
        self.rules = rules
        self._set_floor()
        self._broker.note_timeout((rules or PLAIN).consumer_timeout_ms)
        self.log.dropping.stop()
        self._retain()

    def _retain(self) -> None:
        """Drops the oldest chunks that are over the limits."""
        rules = self.rules
        if rules is None:
            return
        if rules.max_length_bytes is not None:
            self._retention.by_size(rules.max_length_bytes)
        if rules.max_age_ms is not None:
            self._retention.by_age(rules.max_age_ms)
        if rules.archive is not None:
            self._warn(rules)

    def _warn(self, rules: Rules) -> None:
        """Warns when limits are exceeded because of an archive."""
        now_ms = self._broker.now_ms
        exceeded = self.exceeded() if now_ms >= self._quiet_until_ms else None
        if exceeded is not None:
            self._quiet_until_ms = now_ms + QUIET_MS
            logger.warning(
                "%s: %s; everything from offset %d on is kept, since archive '%s' has not reported "
                "more",
                self._where, exceeded, self.log.floor, rules.archive,
            )  # fmt: skip

    # -- retention by archive

    def _set_floor(self) -> None:
        self.log.floor = self.archives.floor((self.rules or PLAIN).archive)

    def report_archive(self, archive: str, report: ArchiveReport) -> int:
        """Stores how far an archive has come, and drops what was kept for it alone; returns a
        commit number. Raises `ChannelError` 406 for one archive too many."""
        commit = self.archives.put(archive, report)
        self._set_floor()
        self._retain()
        return commit

    def forget_archive(self, archive: str) -> int:
        """Forgets what an archive has reported; returns a commit number, 0 if that is nothing."""
        commit = self.archives.remove(archive)
        self._set_floor()
        return commit

    def exceeded(self) -> str | None:
        """Returns which limit is exceeded because an archive lags behind, None if none is."""
        return None if self.rules is None else self._retention.exceeded(self.rules)

    # -- paging out

    @property
    def paged_out_count(self) -> int:
        return self.ready_count - self.log.resident_count

    @property
    def estimated_bytes(self) -> int:
        return self.log.resident_bytes

    def page_out(
        self, head_bytes: int, *, transient: bool, enough: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """As in the base; the newest messages stay, since consumers at the end read them next."""
        self._offset_headers.clear()
        if isinstance(self.ring, ReaderRing) and not enough():
            self.ring.release_read_ahead()
        log = self.log
        each = max(1, log.resident_bytes // log.resident_count) if log.resident_count else 1
        return log.page_out(head_bytes // each, transient=transient, enough=enough)
