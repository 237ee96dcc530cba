"""Stream queues: nothing is consumed, each consumer reads on from a place of its own.

All messages are kept on disk, also transient ones, and shown when they are there. An ack is
credit and nothing else; reject and requeue too. What a consumer gets carries its offset as
`x-stream-offset`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    """See the module; `log` has the messages."""

    __slots__ = ("_offset_headers", "_retention", "log")

    persists_all = True
    in_order = True
    counts_as_backlog = False
    header = OFFSET_HEADER

    def _activate(self, rules: Rules) -> None:
        super()._activate(rules)
        if not hasattr(self, "log"):
            self._begin()

    def _begin(self) -> None:
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
        """There is something to read, or to hand out."""
        self._broker.wake(self)
        self._broker.on_work()

    # -- what is in it

    @property
    def ready_count(self) -> int:
        return self.log.end - self.log.first

    @property
    def next_offset(self) -> int:
        return self.log.end

    def refuses(self, entry: QueueEntry) -> bool:
        return False

    def enqueue(self, entry: QueueEntry) -> None:
        self.log.append(entry)
        self._retain()

    def recover(self, held: Sequence[PagedOut | MessageRange]) -> None:
        self.log.recover(held)
        self._retain()

    # -- who reads it

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
        """Puts it where it wants to begin; what was dropped by then is not there any more."""
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
        """Looks at up to `limit` messages for one reader; gives how many that were."""
        consumer, cursor = reader.consumer, reader.cursor
        looked = 0
        while cursor is not None:
            if looked >= limit:
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
            passed, part = _matching(at_most(messages, limit - looked), reader.filter, credit)
            offset = cursor.offset + part.low - messages.low
            cursor.offset += passed
            looked += passed
            if part.count:
                self._deliver(consumer, part, offset)
        return looked

    def _deliver(self, consumer: Consumer, messages: MessageRange, offset: int) -> None:
        self.unacked_count += messages.count
        shown = self._offset_headers.add(messages, offset, consumer.prefetch)
        consumer.session.deliver(consumer, placeholder(messages), shown)

    # -- what becomes of it: nothing

    def settle(self, messages: MessageRange) -> None:
        self.unacked_count -= messages.high - messages.low

    def note_settled(self, messages: MessageRange, many: ManySettled) -> None:
        """Nothing of it goes."""

    def count_settled(self, messages: MessageRange, many: ManySettled) -> None:
        self.settle(messages)

    def begin_requeue(self, messages: MessageRange, *, failed: bool = True) -> list[MessageRange]:
        self.unacked_count -= messages.high - messages.low
        return []

    def return_undelivered(self, messages: MessageRange) -> None:
        self.unacked_count -= messages.high - messages.low

    def reject(self, messages: MessageRange) -> None:
        self.unacked_count -= messages.high - messages.low

    def purge(self, done: Callable[[], None] = lambda: None) -> int:
        """At its end; a client is refused (`check_purge`)."""
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
        """Drops the oldest pieces that are over the limits."""
        rules = self.rules
        if rules is None:
            return
        if rules.max_length_bytes is not None:
            self._retention.by_size(rules.max_length_bytes)
        if rules.max_age_ms is not None:
            self._retention.by_age(rules.max_age_ms)

    # -- out of memory

    @property
    def paged_out_count(self) -> int:
        return self.ready_count - self.log.resident_count

    @property
    def estimated_bytes(self) -> int:
        return self.log.resident_bytes

    def page_out(
        self, head_bytes: int, *, transient: bool, enough: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """What is read next by those who have read all is at the end: that stays."""
        self._offset_headers.clear()
        if isinstance(self.ring, ReaderRing) and not enough():
            self.ring.release_read_ahead()
        log = self.log
        each = max(1, log.resident_bytes // log.resident_count) if log.resident_count else 1
        return log.page_out(head_bytes // each, transient=transient, enough=enough)


def at_most(messages: MessageRange, limit: int) -> MessageRange:
    """The front of a range that may go out in one piece."""
    batch = messages.entry.batch
    if batch.size_bytes > DISPATCH_BYTES:
        limit = min(limit, max(1, DISPATCH_BYTES * batch.count // batch.size_bytes))
    return (
        messages
        if messages.count <= limit
        else MessageRange(messages.entry, messages.low, messages.low + limit)
    )


def _matching(
    messages: MessageRange, wanted: Filter | None, credit: int
) -> tuple[int, MessageRange]:
    """The first messages in a row that are wanted, at most `credit`, and how many of the range
    that passes: with an empty one, all."""
    if wanted is None:
        high = min(messages.high, messages.low + credit)
        return high - messages.low, MessageRange(messages.entry, messages.low, high)
    answers = _answers(messages, wanted)
    low = next((at for at, answer in answers if answer), messages.high)
    high = (
        next((at for at, answer in answers if not answer), messages.high)
        if low < messages.high
        else low
    )
    high = min(high, low + credit)
    return high - messages.low, MessageRange(messages.entry, low, high)


def _answers(messages: MessageRange, wanted: Filter) -> Iterator[tuple[int, bool]]:
    entry = messages.entry
    for at in range(messages.low, messages.high):
        yield at, wanted.wants(entry.batch.properties(entry.index(at)))
