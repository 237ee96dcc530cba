"""Outstanding deliveries against a model of them: a dictionary by delivery tag."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.core.held import held, held_of
from tests.core.messages import batch
from warrenmq.core.message.queue_entry import MessageRange, QueueEntry
from warrenmq.core.queue.consumer import Consumer
from warrenmq.core.queue.queue import Queue
from warrenmq.core.queue.unacked import DeliveryRange, Unacked

from .support import FakeContext, Session, add, sequences


class Held(NamedTuple):
    consumer: Consumer | None
    queue: Queue
    sequence: int
    redelivered: bool


def flat(pieces: list[DeliveryRange] | None) -> list[Held] | None:
    if pieces is None:
        return None
    return [
        Held(piece.consumer, piece.queue, number, piece.messages.redelivered)
        for piece in pieces
        for number in sequences(piece.messages)
    ]


class Model(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        context = FakeContext()
        self.queues = [context.queue(), context.queue()]
        self.consumers = [add(queue, Session()) for queue in self.queues]
        self.unacked = Unacked()
        self.model: dict[int, Held] = {}
        self.taken: list[tuple[list[DeliveryRange], dict[int, Held]]] = []
        self.next_tag = 1
        self.next_sequence = 1

    tags = st.integers(0, 70)

    @rule(
        count=st.integers(1, 9),
        skipped=st.sampled_from([0, 0, 0, 1, 5]),
        which=st.integers(0, 1),
        by_get=st.booleans(),
        redelivered=st.booleans(),
    )
    def deliver(
        self, count: int, skipped: int, which: int, by_get: bool, redelivered: bool
    ) -> None:
        """Tags are skipped where deliveries without acks went out between."""
        tag = self.next_tag + skipped
        entry = QueueEntry(batch(count + 2, self.next_sequence), None)
        messages = MessageRange(entry, 1, 1 + count, redelivered)
        consumer = None if by_get else self.consumers[which]
        self.unacked.add(tag, consumer, self.queues[which], messages)
        for at, number in enumerate(sequences(messages)):
            self.model[tag + at] = Held(consumer, self.queues[which], number, redelivered)
        self.next_tag = tag + count
        self.next_sequence += count + 2

    @rule(tag=tags)
    def single(self, tag: int) -> None:
        self.agree(self.unacked.take(tag, tag), [tag])

    @rule(first=tags, count=st.integers(1, 20))
    def row(self, first: int, count: int) -> None:
        last = first + count - 1
        self.agree(self.unacked.take(first, last), range(first, last + 1))

    @rule(back=st.integers(0, 12))
    def recent(self, back: int) -> None:
        tag = self.next_tag - back
        self.agree(self.unacked.take(tag, tag), [tag])

    @rule(last=tags)
    def multiple(self, last: int) -> None:
        known = [tag for tag in self.model if tag <= last]
        self.agree(self.unacked.take_up_to(last), known if last in self.model else [last])

    @rule(chance=st.integers(0, 5))
    def everything(self, chance: int) -> None:
        if chance == 0:
            self.agree(self.unacked.take_all(), list(self.model))

    @rule(count=st.integers(1, 3), which=st.integers(0, 50))
    def back(self, count: int, which: int) -> None:
        pieces: list[DeliveryRange] = []
        for _ in range(min(count, len(self.taken))):
            part, messages = self.taken.pop(which % len(self.taken))
            pieces += part
            self.model.update(messages)
        for _ in self.unacked.put_back(pieces):
            pass

    def agree(self, pieces: list[DeliveryRange] | None, tags: Any) -> None:
        if any(tag not in self.model for tag in tags):
            assert pieces is None
            return
        messages = {tag: self.model.pop(tag) for tag in sorted(tags)}
        assert flat(pieces) == list(messages.values())
        assert pieces is not None
        numbers = [piece.tag + at for piece in pieces for at in range(piece.messages.count)]
        assert numbers == list(messages)
        self.taken.append((pieces, messages))

    @invariant()
    def counts(self) -> None:
        assert self.unacked.count == len(self.model)


TestModel: Any = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=30)


@pytest.fixture
def queue() -> Queue:
    return FakeContext().queue()


def deliver(unacked: Unacked, queue: Queue, tag: int, count: int) -> MessageRange:
    messages = MessageRange(QueueEntry(batch(count, tag), None), 0, count)
    unacked.add(tag, None, queue, messages)
    return messages


def taken(pieces: list[DeliveryRange] | None) -> list[list[int]] | None:
    return None if pieces is None else [sequences(piece.messages) for piece in pieces]


def test_a_settled_range_frees_its_messages(queue: Queue) -> None:
    unacked = Unacked()
    for tag, count in ((1, 1), (2, 2), (4, 1)):
        deliver(unacked, queue, tag, count)
    for tag, kept in ((3, 3), (2, 2)):
        assert taken(unacked.take(tag, tag)) == [[tag]]
        assert held_of(unacked, QueueEntry) == kept


def test_one_unacked_delivery_does_not_keep_settled_ranges(queue: Queue) -> None:
    unacked = Unacked()
    deliver(unacked, queue, 1, 1)
    before = len(held(unacked))
    for tag in range(2, 10_000):
        deliver(unacked, queue, tag, 1)
        assert taken(unacked.take(tag, tag)) == [[tag]]
    assert len(held(unacked)) <= before + 5 * 1_024
    assert unacked.take(9_999, 9_999) is None
    assert taken(unacked.take_all()) == [[1]]


def test_tags_are_known_after_settled_ranges_are_removed(queue: Queue) -> None:
    unacked = Unacked()
    kept = []
    for tag in range(1, 6_000):
        deliver(unacked, queue, tag, 1)
        if tag % 7:
            assert unacked.take(tag, tag) is not None
        else:
            kept.append(tag)
    assert unacked.count == len(kept)
    for tag in reversed(kept):
        assert unacked.take(tag + 1, tag + 1) is None
        assert taken(unacked.take(tag, tag)) == [[tag]]
    assert unacked.count == 0


def test_put_back_joins_adjacent_deliveries(queue: Queue) -> None:
    unacked = Unacked()
    deliver(unacked, queue, 1, 20)
    deliver(unacked, queue, 21, 1)
    before = len(held(unacked))
    for _ in range(3):
        pieces = [piece for tag in (2, 21, 3, 20) for piece in unacked.take(tag, tag) or ()]
        assert unacked.take(3, 3) is None
        for _ in unacked.put_back(pieces):
            pass
        assert unacked.count == 21
        assert len(held(unacked)) <= before
    assert taken(unacked.take_up_to(21)) == [list(range(1, 21)), [21]]
