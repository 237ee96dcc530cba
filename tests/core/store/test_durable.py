"""The durable store against a plain model: what is kept over restarts, clean and unclean."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.core.messages import batch as strided
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.batch import (
    Batch,
    MessageRange,
    PagedOut,
    QueueEntry,
    ScatteredBatch,
    SingleMessage,
    envelope,
)
from warrenmq.core.store.disk import RealDisk
from warrenmq.core.store.durable import DurableStore
from warrenmq.core.wire.properties import PERSISTENT

from .fake_queue import FakeQueue, frames_of


def scattered(count: int, sequence: int) -> ScatteredBatch:
    """Messages of different sizes, with something between them."""
    data = bytearray(b"before")
    starts, contents, ends = array("I"), array("I"), array("I")
    for number in range(count):
        start, content, frames = frames_of(bytes((number % 251,)) * (number % 7))
        starts.append(len(data) + start)
        contents.append(len(data) + content)
        data += frames
        ends.append(len(data))
    return ScatteredBatch(bytes(data), sequence, PERSISTENT, 0, starts, contents, ends)


def whole(sequence: int) -> SingleMessage:
    return SingleMessage(
        envelope("x", "key"), b"\x10\x00\x02", b"body", sequence, PERSISTENT, 0, ("blind",)
    )


@dataclass
class Model:
    """What each queue must hold: body by sequence number."""

    queues: dict[int, FakeQueue] = field(default_factory=dict)
    held: dict[int, dict[int, bytes]] = field(default_factory=dict)


class Life:
    """One store after the other on one directory, driven at random."""

    def __init__(self, directory: Path, seed: int, segment_bytes: int) -> None:
        self.random = random.Random(seed)
        self.directory = directory
        self.clock = ManualClock()
        self.segment_bytes = segment_bytes
        self.model = Model()
        self.store = self.open()

    def open(self) -> DurableStore:
        return DurableStore(
            RealDisk(self.directory), clock=self.clock, segment_bytes=self.segment_bytes
        )

    def step(self) -> None:
        action = self.random.choice(
            [self.publish] * 6 + [self.settle] * 6 + [self.page_out, self.page_in, self.turn]
            + [self.new_queue, self.drop, self.purge][: self.random.randrange(4)]
        )  # fmt: skip
        action()
        if self.random.random() < 0.3:
            self.turn()

    def new_queue(self) -> None:
        if len(self.model.queues) < 6:
            queue = FakeQueue(self.store.reserve(1))
            self.model.queues[queue.id] = queue
            self.model.held[queue.id] = {}
            self.store.define(b"q%d" % queue.id, b"value")

    def some_queue(self) -> FakeQueue | None:
        return self.random.choice(list(self.model.queues.values()) or [None])

    def drop(self) -> None:
        queue = self.some_queue()
        if queue is not None:
            self.store.drop(queue)
            self.store.define(b"q%d" % queue.id, None)
            del self.model.queues[queue.id], self.model.held[queue.id]

    def purge(self) -> None:
        queue = self.some_queue()
        if queue is None:
            return
        for held in list(queue.backlog):
            if isinstance(held, PagedOut):
                for _ in self.store.discard(queue, held):
                    pass
            else:
                self.settle_range(queue, queue.backlog.empty(held))
        kept = {n for messages in queue.taken for n in numbers(messages)}
        queue.forget_backlog()
        self.model.held[queue.id] = {
            n: body for n, body in self.model.held[queue.id].items() if n in kept
        }

    def publish(self) -> None:
        queues = self.random.sample(
            list(self.model.queues.values()), self.random.randint(0, len(self.model.queues))
        )
        if not queues:
            self.new_queue()
            return
        batch = self.batch()
        entries = []
        rest = list(queues)
        while rest:
            together = [rest.pop() for _ in range(self.random.randint(1, len(rest)))]
            chosen = self.selection(batch.count)
            entries += [(queue, QueueEntry(batch, chosen)) for queue in together]
        self.store.append(batch, entries)
        for queue, entry in entries:
            queue.backlog.append(entry)
            for at in range(entry.count):
                self.model.held[queue.id][entry.sequence(at)] = batch.body(entry.index(at))

    def batch(self) -> Batch:
        count = self.random.choice([1, 2, 5, 40])
        kind = self.random.randrange(3)
        if kind == 0:
            return strided(count, self.store.reserve(count), PERSISTENT, 9)
        if kind == 1:
            return scattered(count, self.store.reserve(count))
        return whole(self.store.reserve(1))

    def selection(self, count: int) -> array[int] | None:
        if self.random.random() < 0.5:
            return None
        chosen = sorted(self.random.sample(range(count), self.random.randint(1, count)))
        return array("I", chosen)

    def settle(self) -> None:
        """Takes some from the head, and settles or gives back some of what is taken."""
        queue = self.some_queue()
        if queue is None:
            return
        head = queue.backlog.head()
        if isinstance(head, PagedOut):
            self.page_in_head(queue)
            return
        if head is not None:
            queue.taken.append(queue.backlog.take(head, self.random.randint(1, 30)))
        if queue.taken:
            at = self.random.randrange(len(queue.taken))
            messages = queue.taken.pop(at)
            if self.random.random() < 0.2:
                queue.backlog.requeue(
                    MessageRange(messages.entry, messages.low, messages.high, True)
                )
                return
            cut = self.random.randint(messages.low, messages.high - 1)
            for piece in (
                MessageRange(messages.entry, messages.low, cut),
                MessageRange(messages.entry, cut + 1, messages.high),
            ):
                if piece.count:
                    queue.taken.append(piece)
            self.settle_range(queue, MessageRange(messages.entry, cut, cut + 1))

    def settle_range(self, queue: FakeQueue, messages: MessageRange) -> None:
        if messages.count:
            self.store.settle(queue, messages)
            for number in numbers(messages):
                self.model.held[queue.id].pop(number, None)

    def page_out(self) -> None:
        queue = self.some_queue()
        if queue is not None:
            list(queue.backlog.page_out(self.random.choice([0, 10]), self.store.page_out))

    def page_in(self) -> None:
        queue = self.some_queue()
        if queue is not None and isinstance(queue.backlog.head(), PagedOut):
            self.page_in_head(queue)

    def page_in_head(self, queue: FakeQueue) -> None:
        paged_out = queue.backlog.head()
        assert isinstance(paged_out, PagedOut)
        self.store.page_in(paged_out, lambda ranges: queue.backlog.paged_in(paged_out, ranges))
        self.turn()

    def turn(self) -> None:
        self.clock.advance(self.random.choice([0, 5, 50, 6_000]))
        if self.random.random() < 0.3:
            self.store.request()
        self.store.turned()

    def settle_down(self) -> None:
        self.store.request()
        for _ in range(20):
            self.store.turned()

    def restart(self) -> None:
        """Everything was written; the process ends in order or not."""
        self.settle_down()
        if self.random.random() < 0.5:
            self.store.stop()
        self.store = self.open()
        assert set(self.store.definitions) == {b"q%d" % key for key in self.model.queues}
        for queue in self.model.queues.values():
            queue.forget_backlog()
            queue.taken.clear()
            for paged_out in self.store.recovered(queue):
                queue.backlog.append_range(paged_out)
        self.store.restored()
        self.check()

    def check(self) -> None:
        """Reads every queue to its end without settling anything."""
        for queue in self.model.queues.values():
            expected = self.model.held[queue.id]
            assert queue.backlog.count + sum(s.count for s in queue.taken) == len(expected)
            while any(isinstance(held, PagedOut) for held in queue.backlog):
                queue.page_in_all(self.store)
            found = dict(self.bodies(queue))
            assert found == expected
            ready = [n for held in queue.backlog for n in numbers(held)]
            assert ready == sorted(ready)

    def bodies(self, queue: FakeQueue) -> Iterator[tuple[int, bytes]]:
        for messages in [*queue.backlog, *queue.taken]:
            assert isinstance(messages, MessageRange)
            if not messages.entry.batch.resident:
                self.store.fetch(messages.entry.batch, lambda: None)
                self.store.turned()
            for at in range(messages.low, messages.high):
                yield (
                    messages.entry.sequence(at),
                    messages.entry.batch.body(messages.entry.index(at)),
                )


def numbers(held: MessageRange | PagedOut) -> list[int]:
    assert isinstance(held, MessageRange)
    return [held.entry.sequence(at) for at in range(held.low, held.high)]


@pytest.mark.parametrize("seed", range(30))
def test_everything_that_was_written_is_back(tmp_path: Path, seed: int) -> None:
    life = Life(tmp_path, seed, random.Random(seed).choice([1_000, 2_000, 10_000, 2**26]))
    for _ in range(4):
        for _ in range(random.Random(seed).choice([10, 60, 250])):
            life.step()
        life.check()
        life.restart()


def test_a_group_that_was_broken_off_counts_for_nothing(tmp_path: Path) -> None:
    """Whoever raises has not finished what was to be kept as a whole."""
    store = DurableStore(RealDisk(tmp_path), clock=ManualClock())

    def broken_off() -> None:
        with store.together():
            store.define(b"half", b"1")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken_off()
    with store.together():
        store.define(b"whole", b"1")
    store.define(b"alone", b"1")
    store.flush()
    store._writer.stop()
    assert list(DurableStore(RealDisk(tmp_path), clock=ManualClock()).definitions) == [
        b"whole", b"alone",
    ]  # fmt: skip
