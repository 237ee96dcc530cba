"""Stream queues: messages are not removed when they are consumed; each consumer reads at its own
offset.

All messages are kept on disk, transient ones too, and delivered once they are there. An ack gives
credit and nothing else, and so do reject and requeue. Deliveries carry the header
`x-stream-offset`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..clock import wall_ms
from ..errors import ConnectionFault, precondition_failed
from ..message.batch import MessageRange, PagedOut, QueueEntry
from ..message.equivalence import resource
from .consumer import Consumer
from .cursor import Cursor, Search
from .queue import DISPATCH_BYTES, Queue
from .readers import Reader, ReaderRing
from .registry import register_queue
from .retention import Retention
from .rules import PLAIN, Rules
from .stream_log import StreamLog
from .stream_offsets import OffsetHeaders, placeholder
from .stream_spec import Ago, Filter, Since, read_filter, read_start

if TYPE_CHECKING:
    from ..store.port import ManySettled

OFFSET_HEADER = b"x-stream-offset"


@register_queue("stream")
class StreamQueue(Queue):
    """A queue whose messages are in a `StreamLog`, until retention drops them."""

    __slots__ = ("_offset_headers", "_retention", "log")

    persists_all = True
    in_order = True
    counts_as_backlog = False
    header = OFFSET_HEADER

    def _initialise(self) -> None:
        self.log = StreamLog(self, self._broker)
        self.log.on_commit = self._committed
        self._retention = Retention(self.log, self._broker, self._retain)
        self._offset_headers = OffsetHeaders(self.header, self._broker.store.memory)
        self._broker.always_kept += 1

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

    def refuses(self, entry: QueueEntry) -> bool:
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

    def get(self, action: Callable[[], None]) -> None:
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
        reader = Reader(consumer, read_filter(consumer.arguments))
        ring.add_reader(reader)
        if consumer.exclusive:
            self.exclusive_consumer = consumer
        self._start_reader(reader)

    def _start_reader(self, reader: Reader) -> None:
        """Starts reading at the offset that the consumer asks for, or at the oldest message."""
        log, start = self.log, read_start(reader.consumer.arguments)

        def ready() -> None:
            if isinstance(self.ring, ReaderRing):
                self.ring.schedule(reader)
                self.wake_up()

        def found(offset: int) -> None:
            reader.cursor = Cursor(log, self._broker.store, offset, ready)
            ready()

        if isinstance(start, Since | Ago):
            Search(log, self._broker.store, self._moment(start), found).step()
        elif isinstance(start, int):
            found(max(log.first, log.end + start if start < 0 else start))
        else:
            found({"first": log.first, "last": log.last_chunk_offset(), "next": log.end}[start])

    def _moment(self, start: Since | Ago) -> int:
        now_ms = self._broker.now_ms
        if isinstance(start, Ago):
            return now_ms - start.ms
        return now_ms + start.wall_ms - wall_ms(self._broker.clock)

    @property
    def has_ready_consumer(self) -> bool:
        return self.ring is not None and self.ring.can_take_one()

    def dispatch(self, budget: int) -> bool:
        ring = self.ring
        if not isinstance(ring, ReaderRing):
            return False
        share = max(1, budget // max(1, len(ring.scheduled)))
        while ring.scheduled and budget > 0:
            budget -= 1 + self._serve(ring, ring.pop_next(), min(share, budget))
        if len(ring.at_end) == len(ring.members):
            self._offset_headers.clear()
        return bool(ring.scheduled)

    def _serve(self, ring: ReaderRing, reader: Reader, limit: int) -> int:
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
            passed, part = _matching(at_most(messages, limit - read_count), reader.filter, credit)
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

    @contextmanager
    def requeuing(self) -> Iterator[None]:
        yield

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
            self._broker.always_kept -= 1
            self._retention.end()
        done()
        return purged

    # -- retention

    def apply(self, rules: Rules | None) -> None:
        self.rules = rules
        self._broker.note_timeout((rules or PLAIN).consumer_timeout_ms)
        self.log.stop_dropping()
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


def at_most(messages: MessageRange, limit: int) -> MessageRange:
    """Returns the first messages of a range, at most `limit` and about `DISPATCH_BYTES`."""
    batch = messages.entry.batch
    if batch.size_bytes > DISPATCH_BYTES:
        limit = min(limit, max(1, DISPATCH_BYTES * batch.count // batch.size_bytes))
    return (
        messages
        if messages.count <= limit
        else MessageRange(messages.entry, messages.low, messages.low + limit)
    )


def _matching(
    messages: MessageRange, message_filter: Filter | None, credit: int
) -> tuple[int, MessageRange]:
    """Returns how many messages of a range were read, and the first consecutive ones that match
    the filter, at most `credit`; an empty range if none does."""
    if message_filter is None:
        high = min(messages.high, messages.low + credit)
        return high - messages.low, MessageRange(messages.entry, messages.low, high)
    matches = _matches(messages, message_filter)
    low = next((at for at, is_match in matches if is_match), messages.high)
    high = (
        next((at for at, is_match in matches if not is_match), messages.high)
        if low < messages.high
        else low
    )
    high = min(high, low + credit)
    return high - messages.low, MessageRange(messages.entry, low, high)


def _matches(messages: MessageRange, message_filter: Filter) -> Iterator[tuple[int, bool]]:
    entry = messages.entry
    for at in range(messages.low, messages.high):
        yield at, message_filter.wants(entry.batch.properties(entry.index(at)))
