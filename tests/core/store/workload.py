"""A workload for the durable store that notes what it asks, and the same look at every recovery."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from tests.core.messages import Sent, scattered, strided, whole
from tests.support.faulty_disk import FaultyDisk
from warrenmq.core.block import Block, Cold, Run, Span
from warrenmq.core.clock import ManualClock
from warrenmq.core.store.log import DurableStore
from warrenmq.core.wire.properties import PERSISTENT

from .fake_queue import FakeQueue
from .history import NEVER, Fact, Found, Group, History, Message

SEGMENT_BYTES = 3_000
CLOCK_S = 1_700_000_000.0


def recover(disk: FaultyDisk, wall_s: float = CLOCK_S) -> tuple[DurableStore, Found]:
    """Opens what is on the disk and reads everything."""
    store = DurableStore(disk, clock=ManualClock(wall_s=wall_s), segment_bytes=SEGMENT_BYTES)
    return store, look(store, [queue_of(key) for key in store.definitions if is_queue(key)])


def look(store: DurableStore, queues: Iterable[FakeQueue]) -> Found:
    known = list(queues)
    for queue in known:
        for cold in store.recovered(queue):
            queue.backlog.freeze(cold)
    store.restored()
    messages = {queue.id: tuple(all_messages(store, queue)) for queue in known}
    return Found(dict(store.definitions), messages)


def all_messages(store: DurableStore, queue: FakeQueue) -> Iterable[tuple[int, bytes]]:
    while any(isinstance(held, Cold) for held in queue.backlog):
        queue.thaw_all(store)
    for span in queue.backlog:
        assert isinstance(span, Span)
        if not span.run.block.resident:
            store.fetch(span.run.block, lambda: None)
            store.turned()
        for at in range(span.low, span.high):
            yield span.run.sequence(at), span.run.block.body(span.run.index(at))


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
            self.disk, clock=self.clock, segment_bytes=SEGMENT_BYTES,
            reserve_bytes=self.options.get("reserve_bytes", 0), on_failure=self.failures.append,
        )  # fmt: skip
        self._store.on_commit(self.note)
        keys = [key for key in self.store.definitions if is_queue(key)]
        self.queues = {queue.id: queue for queue in map(queue_of, keys)}
        self.history.observe(look(self.store, self.queues.values()))
        self.note()

    def note(self) -> None:
        self.history.committed = self.store.committed

    def run(self, steps: int, *, groups: bool = True) -> None:
        actions: list[Callable[[], None]] = (
            [self.publish] * 5 + [self.settle] * 9 + [self.group] * 2 * groups + [self.chill] * 2
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
        """Everything that can be confirmed is, and checkpoints are taken."""
        for _ in range(6):
            self.store.request()
            self.store.turned()

    def stop(self) -> None:
        self.store.stop(
            {(queue.id, None): self._delivered(queue) for queue in self.queues.values()}
        )
        self.note()

    def _delivered(self, queue: FakeQueue) -> int:
        return max((span.run.sequence(span.high - 1) for span in queue.taken), default=0)

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
        block = self._block()
        runs = []
        while queues:
            chosen = self._selection(block.count)
            some = self.random.randint(1, len(queues))
            runs += [(queue, Run(block, chosen)) for queue in queues[:some]]
            queues = queues[some:]
        facts = self._note_publish(block, runs)
        number = self.store.append(block, runs)
        for fact in facts.values():
            fact.published = number
        for queue, run in runs:
            queue.backlog.append(run)
        return list(facts)

    def _note_publish(self, block: Block, runs: list[tuple[FakeQueue, Run]]) -> dict[Message, Fact]:
        facts = {}
        for queue, run in runs:
            for at in range(run.count):
                message = queue.id, run.sequence(at)
                facts[message] = self.history.publish(message, block.body(run.index(at)))
        return facts

    def _block(self) -> Block:
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
            return whole(sent[0], sequence=first, traits=PERSISTENT)
        shape = scattered if kind == 1 else strided
        return shape(sent, sequence=first, traits=PERSISTENT, before=b"x" * (size % 5))

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
            span = queue.taken.pop(self.random.randrange(len(queue.taken)))
            if self.random.random() < 0.15:
                queue.backlog.put_back(Span(span.run, span.low, span.high, True))
                return
            cut = self.random.randint(span.low, span.high - 1)
            if cut > span.low:
                queue.taken.append(Span(span.run, span.low, cut))
            self._settle(queue, Span(span.run, cut, span.high))

    def _take(self, queue: FakeQueue) -> None:
        head = queue.backlog.head()
        if isinstance(head, Cold):
            cold = head
            self.store.thaw(cold, lambda spans: queue.backlog.thawed(cold, spans))
            self.store.turned()
            head = queue.backlog.head()
        if isinstance(head, Span):
            queue.taken.append(queue.backlog.take(head, self.random.randint(1, 30)))

    def _settle(self, queue: FakeQueue, span: Span) -> list[Message]:
        gone = [(queue.id, span.run.sequence(at)) for at in range(span.low, span.high)]
        self.history.settle(gone, NEVER)
        self.store.settle(queue, span)
        self.history.settle(gone, self.store.barrier() or NEVER)
        return gone

    def group(self) -> None:
        """A dead letter, or a transaction: messages come, others go, a value is set."""
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

    def chill(self) -> None:
        queue = self._any()
        if queue is not None:
            list(queue.backlog.chill(self.random.choice([0, 10]), self.store.chill))

    def _any(self) -> FakeQueue | None:
        return self.random.choice(list(self.queues.values())) if self.queues else None

    def _some(self) -> list[FakeQueue]:
        queues = list(self.queues.values())
        return self.random.sample(queues, self.random.randint(0, len(queues)))
