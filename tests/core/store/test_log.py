"""The durable store against a plain model: what is kept over restarts, clean and unclean."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.core.messages import block as strided
from warrenmq.core.block import Block, Cold, Run, ScatteredBlock, Span, WholeBlock, envelope
from warrenmq.core.clock import ManualClock
from warrenmq.core.store.disk import RealDisk
from warrenmq.core.store.log import DurableStore
from warrenmq.core.wire.properties import PERSISTENT

from .fake_queue import FakeQueue, frames_of


def scattered(count: int, sequence: int) -> ScatteredBlock:
    """Messages of different sizes, with something between them."""
    data = bytearray(b"before")
    starts, contents, ends = array("I"), array("I"), array("I")
    for number in range(count):
        start, content, frames = frames_of(bytes((number % 251,)) * (number % 7))
        starts.append(len(data) + start)
        contents.append(len(data) + content)
        data += frames
        ends.append(len(data))
    return ScatteredBlock(bytes(data), sequence, PERSISTENT, 0, starts, contents, ends)


def whole(sequence: int) -> WholeBlock:
    return WholeBlock(
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
            [self.publish] * 6 + [self.settle] * 6 + [self.chill, self.thaw, self.turn]
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
            if isinstance(held, Cold):
                for _ in self.store.discard(queue, held):
                    pass
            else:
                self.settle_span(queue, queue.backlog.empty(held))
        kept = {n for span in queue.taken for n in numbers(span)}
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
        block = self.block()
        runs = []
        rest = list(queues)
        while rest:
            together = [rest.pop() for _ in range(self.random.randint(1, len(rest)))]
            chosen = self.selection(block.count)
            runs += [(queue, Run(block, chosen)) for queue in together]
        self.store.append(block, runs)
        for queue, run in runs:
            queue.backlog.append(run)
            for at in range(run.count):
                self.model.held[queue.id][run.sequence(at)] = block.body(run.index(at))

    def block(self) -> Block:
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
        if isinstance(head, Cold):
            self.thaw_head(queue)
            return
        if head is not None:
            queue.taken.append(queue.backlog.take(head, self.random.randint(1, 30)))
        if queue.taken:
            at = self.random.randrange(len(queue.taken))
            span = queue.taken.pop(at)
            if self.random.random() < 0.2:
                queue.backlog.put_back(Span(span.run, span.low, span.high, True))
                return
            cut = self.random.randint(span.low, span.high - 1)
            for piece in (Span(span.run, span.low, cut), Span(span.run, cut + 1, span.high)):
                if piece.count:
                    queue.taken.append(piece)
            self.settle_span(queue, Span(span.run, cut, cut + 1))

    def settle_span(self, queue: FakeQueue, span: Span) -> None:
        if span.count:
            self.store.settle(queue, span)
            for number in numbers(span):
                self.model.held[queue.id].pop(number, None)

    def chill(self) -> None:
        queue = self.some_queue()
        if queue is not None:
            list(queue.backlog.chill(self.random.choice([0, 10]), self.store.chill))

    def thaw(self) -> None:
        queue = self.some_queue()
        if queue is not None and isinstance(queue.backlog.head(), Cold):
            self.thaw_head(queue)

    def thaw_head(self, queue: FakeQueue) -> None:
        cold = queue.backlog.head()
        assert isinstance(cold, Cold)
        self.store.thaw(cold, lambda spans: queue.backlog.thawed(cold, spans))
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
            for cold in self.store.recovered(queue):
                queue.backlog.freeze(cold)
        self.store.restored()
        self.check()

    def check(self) -> None:
        """Reads every queue to its end without settling anything."""
        for queue in self.model.queues.values():
            expected = self.model.held[queue.id]
            assert queue.backlog.count + sum(s.count for s in queue.taken) == len(expected)
            while any(isinstance(held, Cold) for held in queue.backlog):
                queue.thaw_all(self.store)
            found = dict(self.bodies(queue))
            assert found == expected
            ready = [n for held in queue.backlog for n in numbers(held)]
            assert ready == sorted(ready)

    def bodies(self, queue: FakeQueue) -> Iterator[tuple[int, bytes]]:
        for span in [*queue.backlog, *queue.taken]:
            assert isinstance(span, Span)
            if not span.run.block.resident:
                self.store.fetch(span.run.block, lambda: None)
                self.store.turned()
            for at in range(span.low, span.high):
                yield span.run.sequence(at), span.run.block.body(span.run.index(at))


def numbers(held: Span | Cold) -> list[int]:
    assert isinstance(held, Span)
    return [held.run.sequence(at) for at in range(held.low, held.high)]


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
