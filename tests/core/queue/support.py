"""A queue context without a broker, which records the calls of its queues."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.core.messages import batch
from warrenmq.core.clock import Clock, ManualClock
from warrenmq.core.commits import Commits
from warrenmq.core.definitions.facts import Facts
from warrenmq.core.message.batch import Batch
from warrenmq.core.message.model import FieldValue, Table
from warrenmq.core.message.queue_entry import MessageRange, QueueEntry
from warrenmq.core.queue.arguments import DeclaredArguments, read_rules
from warrenmq.core.queue.backlog import Backlog
from warrenmq.core.queue.classic import ClassicQueue
from warrenmq.core.queue.consumer import Consumer
from warrenmq.core.queue.queue import Queue
from warrenmq.core.slices import Slices
from warrenmq.core.store.memory import MemoryStore
from warrenmq.core.store.port import QueueIdentity, Store
from warrenmq.core.timers import Timers
from warrenmq.core.wire.properties import PLAIN, MessageAttributes

BUDGET = 2_000


def sequences(*ranges: MessageRange) -> list[int]:
    """Returns the sequence numbers of all messages, in order."""
    return [
        messages.entry.sequence(at)
        for messages in ranges
        for at in range(messages.low, messages.high)
    ]


def ranges(backlog: Backlog) -> list[MessageRange]:
    """Returns the ranges of a backlog that are in memory."""
    return [messages for messages in backlog if isinstance(messages, MessageRange)]


def head(backlog: Backlog) -> MessageRange:
    first = backlog.head()
    assert isinstance(first, MessageRange)
    return first


def expiring(ms: str) -> MessageAttributes:
    return MessageAttributes(expiration=ms)


class RecordingStore(MemoryStore):
    """Records what was settled."""

    def __init__(self) -> None:
        super().__init__(first_sequence=1)
        self.settled: list[int] = []

    def settle(self, queue: QueueIdentity, messages: MessageRange) -> None:
        assert queue.durable
        self.settled += sequences(messages)


@dataclass
class FakeContext:
    """The broker as queues see it. `dead_letters` are sequence numbers with their reasons."""

    store: Store = field(default_factory=RecordingStore)
    timers: Timers = field(default_factory=Timers)
    clock: Clock = field(default_factory=ManualClock)
    slices: Slices = field(default_factory=lambda: Slices(ManualClock()))
    persisting_queues: int = 0
    now_ms: int = 1_000
    dead_letters: list[tuple[int, str]] = field(default_factory=list)
    dropped: list[Queue] = field(default_factory=list)
    active: list[Queue] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.facts = Facts(self.store)
        self.commits = Commits(self.store, self.on_work, self.on_work)

    @property
    def settled(self) -> list[int]:
        """Returns the sequence numbers that durable queues have settled in the store."""
        assert isinstance(self.store, RecordingStore)
        return self.store.settled

    def on_work(self) -> None:
        """Does nothing: tests take their turns themselves."""

    def wake(self, queue: Queue) -> None:
        if not queue.active:
            queue.active = True
            self.active.append(queue)

    def note_timeout(self, timeout_ms: int | None) -> None:
        """Does nothing: no timeout is checked here."""

    def dead_letter(self, queue: Queue, messages: MessageRange, reason: str) -> None:
        self.dead_letters += [(number, reason) for number in sequences(messages)]

    def dead_letter_as(
        self, queue: Queue, messages: MessageRange, reason: str, shown: Batch
    ) -> None:
        self.dead_letter(queue, messages, reason)

    def delete_queue(self, queue: Queue) -> None:
        self.dropped.append(queue)

    def queue(self, *, durable: bool = False, **arguments: FieldValue) -> ClassicQueue:
        """Creates a queue; arguments are written with `_` for `-` and without their `x-`."""
        table: Table = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
        return ClassicQueue(
            "q",
            "/",
            self,
            1,
            durable=durable,
            arguments=table,
            rules=read_rules(DeclaredArguments("q", "/"), table),
        )

    def turn(self, budget: int = BUDGET) -> None:
        """Dispatches until there is nothing more to do."""
        while self.active:
            queue = self.active.pop(0)
            queue.active = False
            if queue.dispatch(budget):
                self.wake(queue)

    def wait(self, ms: int) -> None:
        """Advances the clock to each time at which something is due."""
        end_ms = self.now_ms + ms
        while (next_ms := self.timers.next_ms) is not None and next_ms <= end_ms:
            self.now_ms = max(self.now_ms, next_ms)
            self.timers.run_due(self.now_ms)
            self.turn()
        self.now_ms = end_ms
        self.turn()


@dataclass(eq=False)
class Session:
    """Takes deliveries, up to `room` of them before its socket is full."""

    prefetch: int = 0
    room: int = 1_000_000
    got: list[tuple[Consumer, MessageRange]] = field(default_factory=list)
    cancels: list[Consumer] = field(default_factory=list)
    unacked_count: int = 0

    @property
    def writable(self) -> bool:
        return self.room > 0

    def deliver(
        self, consumer: Consumer, messages: MessageRange, shown: MessageRange | None = None
    ) -> None:
        self.got.append((consumer, messages))
        self.room -= messages.count
        if consumer.no_ack:
            consumer.queue.settle(messages)
        else:
            consumer.unacked_count += messages.count
            self.unacked_count += messages.count

    def cancelled(self, consumer: Consumer) -> None:
        self.cancels.append(consumer)

    def numbers(self, consumer: Consumer | None = None) -> list[int]:
        """Returns the sequence numbers delivered, to all consumers or to one."""
        return sequences(
            *(messages for to, messages in self.got if consumer is None or to is consumer)
        )

    def take_back(self, consumer: Consumer) -> list[MessageRange]:
        """Removes and returns the unacked deliveries of a consumer, with their credit."""
        ranges = [messages for to, messages in self.got if to is consumer]
        self.got = [(to, messages) for to, messages in self.got if to is not consumer]
        for messages in ranges:
            consumer.unacked_count -= messages.count
            self.unacked_count -= messages.count
        return ranges

    def ack(self, consumer: Consumer) -> None:
        for messages in self.take_back(consumer):
            consumer.queue.settle(messages)
        consumer.reopen()


def add(
    queue: Queue,
    session: Session,
    tag: str = "c",
    *,
    no_ack: bool = False,
    exclusive: bool = False,
    priority: int = 0,
    prefetch: int = 0,
) -> Consumer:
    consumer = Consumer(
        tag, queue, session,
        no_ack=no_ack, exclusive=exclusive, priority=priority, prefetch=prefetch,
    )  # fmt: skip
    queue.add_consumer(consumer)
    return consumer


def publish(
    context: FakeContext,
    queue: Queue,
    count: int = 1,
    attributes: MessageAttributes = PLAIN,
    body_bytes: int = 4,
) -> bool:
    """Publishes the messages of one read; False if the queue refuses them."""
    entry = QueueEntry(made(context, count, attributes, body_bytes), None)
    refused = queue.refuses(entry.batch)
    if not refused:
        queue.enqueue(entry)
    return not refused


def made(
    context: FakeContext, count: int = 1, attributes: MessageAttributes = PLAIN, body_bytes: int = 4
) -> Batch:
    return batch(count, context.store.reserve(count), attributes, body_bytes)


def classic(queue: Queue) -> ClassicQueue:
    assert isinstance(queue, ClassicQueue)
    return queue


def ready(queue: Queue) -> list[int]:
    """Returns the sequence numbers of the ready messages, in order."""
    return sequences(*classic(queue).backlog)


def take(queue: Queue, limit: int) -> Iterable[MessageRange]:
    """Takes up to `limit` messages as basic.get does."""
    while limit > 0 and (messages := queue.dequeue(limit)) is not None:
        limit -= messages.count
        yield messages
