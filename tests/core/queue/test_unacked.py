"""Outstanding deliveries against a model of them: a dictionary by delivery tag."""

from __future__ import annotations

import gc
from typing import Any, NamedTuple
from weakref import ref

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.core.messages import batch
from warrenmq.core.message.batch import MessageRange, QueueEntry
from warrenmq.core.queue.consumer import Consumer
from warrenmq.core.queue.queue import Queue
from warrenmq.core.queue.unacked import DeliveryRange, Unacked, _Range

from .support import House, Session, add, sequences


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
        house = House()
        self.queues = [house.queue(), house.queue()]
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
            part, held = self.taken.pop(which % len(self.taken))
            pieces += part
            self.model.update(held)
        for _ in self.unacked.put_back(pieces):
            pass

    def agree(self, pieces: list[DeliveryRange] | None, tags: Any) -> None:
        if any(tag not in self.model for tag in tags):
            assert pieces is None
            return
        held = {tag: self.model.pop(tag) for tag in sorted(tags)}
        assert flat(pieces) == list(held.values())
        assert pieces is not None
        numbers = [piece.tag + at for piece in pieces for at in range(piece.messages.count)]
        assert numbers == list(held)
        self.taken.append((pieces, held))

    @invariant()
    def counts(self) -> None:
        assert self.unacked.count == len(self.model)


TestModel: Any = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=30)


@pytest.fixture
def queue() -> Queue:
    return House().queue()


def deliver(unacked: Unacked, queue: Queue, tag: int, count: int) -> MessageRange:
    messages = MessageRange(QueueEntry(batch(count, tag), None), 0, count)
    unacked.add(tag, None, queue, messages)
    return messages


def taken(pieces: list[DeliveryRange] | None) -> list[list[int]] | None:
    return None if pieces is None else [sequences(piece.messages) for piece in pieces]


def test_messages_that_belong_together_are_taken_together(queue: Queue) -> None:
    unacked = Unacked()
    deliver(unacked, queue, 1, 10)
    deliver(unacked, queue, 11, 5)
    assert taken(unacked.take(3, 3)) == [[3]]
    assert taken(unacked.take(5, 6)) == [[5, 6]]
    assert taken(unacked.take_up_to(12)) == [[1, 2], [4], [7, 8, 9, 10], [11, 12]]
    assert taken(unacked.take_all()) == [[13, 14, 15]]


@pytest.mark.parametrize("tag", [0, 4, 11, 100])
def test_unknown_tags(queue: Queue, tag: int) -> None:
    unacked = Unacked()
    assert unacked.take(tag, tag) is None
    deliver(unacked, queue, 5, 6)
    assert unacked.take(tag, tag) is None
    assert unacked.take_up_to(tag) is None
    assert unacked.take(tag, tag + 2) is None
    assert unacked.count == 6


def test_repeated_tags(queue: Queue) -> None:
    unacked = Unacked()
    deliver(unacked, queue, 1, 4)
    for tag in (1, 3):
        assert taken(unacked.take(tag, tag)) == [[tag]]
        assert unacked.take(tag, tag) is None
        assert unacked.take_up_to(tag) is None
    assert unacked.take(2, 3) is None
    assert taken(unacked.take_up_to(4)) == [[2], [4]]
    assert unacked.take_up_to(4) is None
    assert unacked.take_all() == []


def test_nothing_is_taken_if_one_of_a_row_is_unknown(queue: Queue) -> None:
    unacked = Unacked()
    deliver(unacked, queue, 1, 3)
    deliver(unacked, queue, 5, 3)
    assert unacked.take(1, 6) is None
    assert unacked.count == 6
    assert taken(unacked.take(5, 7)) == [[5, 6, 7]]


def test_a_settled_delivery_lets_go_of_its_messages(queue: Queue) -> None:
    unacked = Unacked()
    deliver(unacked, queue, 1, 1)
    watched = ref_to_data(unacked, queue, 2)
    deliver(unacked, queue, 4, 1)
    assert taken(unacked.take(3, 3)) == [[3]]
    assert watched() is not None
    assert taken(unacked.take(2, 2)) == [[2]]
    gc.collect()
    assert watched() is None


def ref_to_data(unacked: Unacked, queue: Queue, tag: int) -> ref[QueueEntry]:
    class Watched(QueueEntry):
        pass

    entry = Watched(batch(2, tag), None)
    unacked.add(tag, None, queue, MessageRange(entry, 0, 2))
    return ref(entry)


def test_one_that_is_kept_does_not_keep_all_behind_it(queue: Queue) -> None:
    unacked = Unacked()
    deliver(unacked, queue, 1, 1)
    for tag in range(2, 10_000):
        deliver(unacked, queue, tag, 1)
        assert taken(unacked.take(tag, tag)) == [[tag]]
    assert len(unacked._ranges) <= 1_024
    assert unacked.take(9_999, 9_999) is None
    assert taken(unacked.take_all()) == [[1]]


def test_a_channel_that_has_settled_everything_keeps_nothing(queue: Queue) -> None:
    unacked = Unacked()
    for tag in range(1, 401):
        deliver(unacked, queue, tag, 1)
    assert taken(unacked.take_up_to(200)) == [[tag] for tag in range(1, 201)]
    for tag in reversed(range(201, 401)):
        assert taken(unacked.take(tag, tag)) == [[tag]]
    held = [one for one in gc.get_objects() if isinstance(one, _Range) and one.queue is queue]
    assert held == []
    assert unacked.take(400, 400) is None
    deliver(unacked, queue, 401, 1)
    assert taken(unacked.take_all()) == [[401]]


def test_tags_stay_known_when_settled_ranges_are_cleared_out(queue: Queue) -> None:
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


def test_what_comes_back_is_put_together_again(queue: Queue) -> None:
    """A transaction may be rolled back again and again."""
    unacked = Unacked()
    deliver(unacked, queue, 1, 20)
    deliver(unacked, queue, 21, 1)
    for _ in range(3):
        pieces = [piece for tag in (2, 21, 3, 20) for piece in unacked.take(tag, tag) or ()]
        assert unacked.take(3, 3) is None
        for _ in unacked.put_back(pieces):
            pass
        assert unacked.count == 21
        assert len(unacked._ranges) == 2
    assert taken(unacked.take_up_to(21)) == [list(range(1, 21)), [21]]
