"""A workload for the durable store that records its calls, and checks each recovery."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from tests.core.messages import Sent, scattered, strided, whole
from tests.support.faulty_disk import FaultyDisk
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.batch import Batch
from warrenmq.core.message.queue_entry import MessageRange, PagedOut, QueueEntry
from warrenmq.core.store.durable import DurableStore
from warrenmq.core.wire.properties import PERSISTENT

from .fake_queue import FakeQueue
from .history import NEVER, Fact, Found, Group, History, Message

SEGMENT_BYTES = 3_000
CLOCK_S = 1_700_000_000.0


def recover(disk: FaultyDisk, wall_s: float = CLOCK_S) -> tuple[DurableStore, Found]:
    """Opens the disk and reads everything."""
    store = DurableStore(disk, clock=ManualClock(wall_s=wall_s), segment_bytes=SEGMENT_BYTES)
    return store, look(store, [queue_of(key) for key in store.definitions if is_queue(key)])


def look(store: DurableStore, queues: Iterable[FakeQueue]) -> Found:
    known = list(queues)
    for queue in known:
        for paged_out in store.recovered.of(queue):
            queue.backlog.append_range(paged_out)
    store.recovered.complete()
    messages = {queue.id: tuple(all_messages(store, queue)) for queue in known}
    return Found(dict(store.definitions), messages)


def all_messages(store: DurableStore, queue: FakeQueue) -> Iterable[tuple[int, bytes]]:
    """Returns numbers and bodies of the ready messages, then of the delivered ones."""
    while any(isinstance(held, PagedOut) for held in queue.backlog):
        queue.page_in_all(store)
    for messages in [*queue.backlog, *queue.taken]:
        assert isinstance(messages, MessageRange)
        if not messages.entry.batch.resident:
            store.batches.fetch(messages.entry.batch, lambda: None)
            store.turned()
        for at in range(messages.low, messages.high):
            yield messages.entry.sequence(at), messages.entry.batch.body(messages.entry.index(at))


def is_queue(key: bytes) -> bool:
    return key.startswith(b"q")


def queue_of(key: bytes) -> FakeQueue:
    return FakeQueue(int(key[1:]))


class Workload:
    """Drives a store on `disk` and notes everything in `history`.

    Raises what the disk raises through the store, if anything.
    """

    def __init__(self, disk: FaultyDisk, seed: int, **options: int) -> None:
        self.disk = disk
        self.random = random.Random(seed)
        self.clock = ManualClock(wall_s=CLOCK_S)
        self.history = History()
        self.queues: dict[int, FakeQueue] = {}
        self.failures: list[OSError] = []
        self.options = options
        self._store: DurableStore | None = None
        self._keys = 0

    @property
    def store(self) -> DurableStore:
        assert self._store is not None
        return self._store

    def open(self) -> None:
        self.history.end_life()
        self._store = DurableStore(
            self.disk, clock=self.clock,
            segment_bytes=self.options.get("segment_bytes", SEGMENT_BYTES),
            reserve_bytes=self.options.get("reserve_bytes", 0), on_failure=self.failures.append,
        )  # fmt: skip
        self._store.progress.on_change(self.note)
        keys = [key for key in self.store.definitions if is_queue(key)]
        self.queues = {queue.id: queue for queue in map(queue_of, keys)}
        self.history.observe(look(self.store, self.queues.values()))
        self.note()

    def note(self) -> None:
        self.history.committed = self.store.progress.committed

    def run(self, steps: int, *, groups: bool = True) -> None:
        actions: list[Callable[[], None]] = (
            [self.publish] * 5 + [self.settle] * 9 + [self.group] * 2 * groups + [self.page_out] * 2
            + [self.new_queue, self.value, self.mark, self.drop]
        )  # fmt: skip
        for _ in range(steps):
            self.random.choice(actions)()
            if self.random.random() < 0.7:
                self.turn()

    def turn(self) -> None:
        self.clock.advance(self.random.choice([0, 5, 50, 6_000]))
        if self.random.random() < 0.4:
            self.store.request()
        self.store.turned()

    def settle_down(self) -> None:
        """Confirms everything that can be confirmed, and makes checkpoints."""
        for _ in range(6):
            self.store.request()
            self.store.turned()

    def stop(self) -> None:
        self.store.stop(
            {(queue.id, None): self._delivered(queue) for queue in self.queues.values()}
        )
        self.note()

    def _delivered(self, queue: FakeQueue) -> int:
        return max(
            (messages.entry.sequence(messages.high - 1) for messages in queue.taken), default=0
        )

    # -- actions

    def new_queue(self) -> None:
        if len(self.queues) < 5:
            queue = FakeQueue(self.store.reserve(1))
            self.queues[queue.id] = queue
            self._define(b"q%d" % queue.id, b"queue")

    def value(self) -> None:
        key = b"k%d" % self.random.randrange(3)
        value = self.random.choice([None, b"%d" % self.random.randrange(10**6) * 20])
        self._define(key, value)

    def _define(self, key: bytes, value: bytes | None) -> None:
        self.history.define(key, value, NEVER)
        self.history.values[key][-1] = (self.store.define(key, value), value)

    def drop(self) -> None:
        queue = self._any()
        if queue is None or self.random.random() < 0.5:
            return
        mine = [message for message in self.history.facts if message[0] == queue.id]
        self.store.drop(queue)
        self.history.settle(mine, self.store.barrier())
        self._define(b"q%d" % queue.id, None)
        del self.queues[queue.id]

    def mark(self) -> None:
        queue = self._any()
        if queue is not None and queue.taken:
            self.store.delivered(queue, self._delivered(queue))

    def publish(self) -> None:
        queues = self._some()
        if not queues:
            self.new_queue()
            return
        self._publish(queues)

    def _publish(self, queues: list[FakeQueue]) -> list[Message]:
        batch = self._batch()
        entries = []
        while queues:
            chosen = self._selection(batch.count)
            some = self.random.randint(1, len(queues))
            entries += [(queue, QueueEntry(batch, chosen)) for queue in queues[:some]]
            queues = queues[some:]
        facts = self._note_publish(batch, entries)
        number = self.store.append(batch, entries)
        for fact in facts.values():
            fact.published = number
        for queue, entry in entries:
            queue.backlog.append(entry)
        return list(facts)

    def _note_publish(
        self, batch: Batch, entries: list[tuple[FakeQueue, QueueEntry]]
    ) -> dict[Message, Fact]:
        facts = {}
        for queue, entry in entries:
            for at in range(entry.count):
                message = queue.id, entry.sequence(at)
                facts[message] = self.history.publish(message, batch.body(entry.index(at)))
        return facts

    def _batch(self) -> Batch:
        count = self.random.choice([1, 2, 5, 20])
        size = self.random.choice([4, 9, 60])
        kind = self.random.randrange(3)
        if kind == 0:
            count = 1
        first = self.store.reserve(count)
        sent = [
            Sent((first + at).to_bytes(8, "big") * (size // 4 + (at % 3 if kind == 1 else 0)))
            for at in range(count)
        ]
        if kind == 0:
            return whole(sent[0], sequence=first, attributes=PERSISTENT)
        shape = scattered if kind == 1 else strided
        return shape(sent, sequence=first, attributes=PERSISTENT, before=b"x" * (size % 5))

    def _selection(self, count: int) -> list[int] | None:
        if self.random.random() < 0.6:
            return None
        return sorted(self.random.sample(range(count), self.random.randint(1, count)))

    def settle(self) -> None:
        queue = self._any()
        if queue is None:
            return
        self._take(queue)
        if queue.taken:
            messages = queue.taken.pop(self.random.randrange(len(queue.taken)))
            if self.random.random() < 0.15:
                queue.backlog.requeue(
                    MessageRange(messages.entry, messages.low, messages.high, True)
                )
                return
            cut = self.random.randint(messages.low, messages.high - 1)
            if cut > messages.low:
                queue.taken.append(MessageRange(messages.entry, messages.low, cut))
            self._settle(queue, MessageRange(messages.entry, cut, messages.high))

    def _take(self, queue: FakeQueue) -> None:
        head = queue.backlog.head()
        if isinstance(head, PagedOut):
            paged_out = head
            self.store.page_in.request(
                paged_out, lambda ranges: queue.backlog.paged_in(paged_out, ranges)
            )
            self.store.turned()
            head = queue.backlog.head()
        if isinstance(head, MessageRange):
            queue.taken.append(queue.backlog.take(head, self.random.randint(1, 30)))

    def _settle(self, queue: FakeQueue, messages: MessageRange) -> list[Message]:
        gone = [
            (queue.id, messages.entry.sequence(at)) for at in range(messages.low, messages.high)
        ]
        self.history.settle(gone, NEVER)
        self.store.settle(queue, messages)
        self.history.settle(gone, self.store.barrier() or NEVER)
        return gone

    def group(self) -> None:
        """Publishes, settles and defines as one group, as for a dead letter or a transaction."""
        queues = self._some()
        source = self._any()
        if not queues or source is None:
            return
        self._take(source)
        self._keys += 1
        group = Group(key=b"g%d" % self._keys, value=b"set")
        self.history.groups.append(group)
        with self.store.together():
            self._define(group.key, group.value)
            group.come += self._publish(queues)
            if source.taken:
                group.gone += self._settle(source, source.taken.pop())
            group.come += self._publish(self._some() or [source])
        number = self.store.barrier()
        for message in group.come:
            self.history.facts[message].published = number
        self.history.settle(group.gone, number)

    def page_out(self) -> None:
        queue = self._any()
        if queue is not None:
            list(queue.backlog.page_out(self.random.choice([0, 10]), self.store.ranges.page_out))

    def _any(self) -> FakeQueue | None:
        return self.random.choice(list(self.queues.values())) if self.queues else None

    def _some(self) -> list[FakeQueue]:
        queues = list(self.queues.values())
        return self.random.sample(queues, self.random.randint(0, len(queues)))
