from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from warrenmq.core.message.queue_entry import MessageRange, QueueEntry
from warrenmq.core.queue.queue import DISPATCH_BYTES
from warrenmq.core.store.port import ManySettled

from .support import FakeContext, Session, add, made, publish, ready, sequences, take

# -- order


def test_dequeue_limits_the_bytes_of_a_range(context: FakeContext) -> None:
    queue = context.queue()
    publish(context, queue, 100, body_bytes=10_000)
    publish(context, queue, 2, body_bytes=2 * DISPATCH_BYTES)
    counts = [messages.count for messages in take(queue, 102)]
    assert max(counts) * 10_000 <= DISPATCH_BYTES
    assert (sum(counts), counts[-2:]) == (102, [1, 1])


class Model(RuleBasedStateMachine):
    """A durable queue against two sets of numbers: what is ready, and what is out."""

    def __init__(self) -> None:
        super().__init__()
        self.context = FakeContext()
        self.queue = self.context.queue(durable=True, dead_letter_exchange="dead")
        self.ready: set[int] = set()
        self.again: set[int] = set()
        self.out: list[MessageRange] = []
        self.settled: list[int] = []
        self.rejected: list[tuple[int, str]] = []

    @rule(count=st.integers(1, 6))
    def publish(self, count: int) -> None:
        entry = QueueEntry(made(self.context, count), None)
        self.queue.enqueue(entry)
        self.ready |= {entry.sequence(at) for at in range(count)}

    @rule(limit=st.integers(1, 8))
    def take(self, limit: int) -> None:
        messages = self.queue.dequeue(limit)
        expected = sorted(self.ready)[: 0 if messages is None else messages.count]
        assert (messages is None) == (not self.ready)
        if messages is not None:
            assert sequences(messages) == expected
            assert {number in self.again for number in expected} == {messages.redelivered}
            self.ready -= set(expected)
            self.out.append(messages)

    @precondition(lambda self: self.out)
    @rule(
        action=st.sampled_from(["settle", "requeue", "return_undelivered", "reject"]),
        data=st.data(),
    )
    def end(self, action: str, data: st.DataObject) -> None:
        messages = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        getattr(self.queue, action)(messages)
        numbers = sequences(messages)
        if action == "settle":
            self.settled += numbers
        elif action == "reject":
            self.rejected += [(number, "rejected") for number in numbers]
        else:
            self.ready |= set(numbers)
        if action == "requeue":
            self.again |= set(numbers)

    @rule(chance=st.integers(0, 4))
    def purge(self, chance: int) -> None:
        if chance == 0:
            assert self.queue.purge() == len(self.ready)
            self.settled += sorted(self.ready)
            self.ready.clear()

    @invariant()
    def agrees(self) -> None:
        assert ready(self.queue) == sorted(self.ready)
        assert self.queue.ready_count == len(self.ready)
        assert self.queue.unacked_count == sum(messages.count for messages in self.out)
        assert self.context.settled == self.settled
        assert self.context.dead_letters == self.rejected


TestModel: Any = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=30)


# -- what becomes of messages


class Group(ManySettled):
    """Records what is noted and counted."""

    def __init__(self) -> None:
        self.noted: list[int] = []
        self.counted: list[int] = []

    def note(self, queue_id: int, messages: MessageRange) -> None:
        self.noted += sequences(messages)

    def count(self, messages: MessageRange) -> None:
        self.counted += sequences(messages)


@pytest.mark.parametrize("durable", [False, True])
def test_messages_settled_as_one_group(context: FakeContext, durable: bool) -> None:
    queue, group = context.queue(durable=durable, delivery_limit=5), Group()
    publish(context, queue, 3)
    first, second, last = (messages for _ in range(3) for messages in take(queue, 1))
    queue.requeue(last)
    (again,) = take(queue, 1)
    for messages in (first, second, again):
        queue.note_settled(messages, group)
    queue.count_settled(first, group)
    queue.count_settled(again, group)
    queue.deleted = True
    queue.count_settled(second, group)
    assert (group.noted, group.counted) == (([1, 2, 3], [1, 3]) if durable else ([], []))
    assert (queue.unacked_count, queue.with_headers(again)) == (0, again)


def test_a_deleted_queue_takes_nothing_back(context: FakeContext) -> None:
    queue = context.queue()
    publish(context, queue, 3)
    first, second, third = (queue.dequeue(1) for _ in range(3))
    assert first is not None and second is not None and third is not None
    queue.deleted = True
    queue.requeue(first)
    queue.return_undelivered(second)
    queue.reject(third)
    assert (queue.ready_count, queue.unacked_count, context.dead_letters) == (0, 0, [])


# -- whose turn it is


def counts(session: Session, consumers: list[Any]) -> list[int]:
    return [len(session.numbers(consumer)) for consumer in consumers]


@given(
    st.integers(1, 12), st.lists(st.integers(1, 150), min_size=1, max_size=6), st.integers(1, 200)
)
def test_shares_differ_by_one_at_most(members: int, reads: list[int], budget: int) -> None:
    context, session = FakeContext(), Session()
    queue = context.queue()
    consumers = [add(queue, session, str(at)) for at in range(members)]
    for count in reads:
        publish(context, queue, count)
        context.turn(budget)
        given = counts(session, consumers)
        assert max(given) - min(given) <= 1
    assert sum(given) == sum(reads)


def test_an_unwritable_session_does_not_delay_others() -> None:
    context, slow, quick = FakeContext(), Session(room=3), Session()
    queue = context.queue()
    stuck = add(queue, slow, "slow")
    add(queue, quick, "quick")
    publish(context, queue, 100)
    context.turn()
    assert len(slow.numbers()) + len(quick.numbers()) == 100
    publish(context, queue, 10)
    context.turn()
    assert len(slow.numbers()) + len(quick.numbers()) == 110
    assert not stuck.open
    before = len(slow.numbers())
    slow.room = 1_000
    stuck.reopen()
    publish(context, queue, 10)
    context.turn()
    assert len(slow.numbers()) == before + 5


def test_dispatch_stops_at_the_budget(context: FakeContext, session: Session) -> None:
    queue = context.queue()
    add(queue, session)
    for _ in range(10):
        publish(context, queue, 10)
    assert queue.dispatch(35)
    assert len(session.numbers()) == 35
    assert not queue.dispatch(65)
    assert not queue.dispatch(10)
    assert session.numbers() == list(range(1, 101))


def test_a_message_wakes_only_a_queue_with_consumers(
    context: FakeContext, session: Session
) -> None:
    queue = context.queue()
    publish(context, queue)
    assert context.active == []
    add(queue, session)
    assert context.active == [queue]
    context.turn()
    publish(context, queue)
    publish(context, queue)
    assert context.active == [queue]
    context.turn()
    assert session.numbers() == [1, 2, 3]


@pytest.mark.parametrize("single", [False, True])
def test_has_ready_consumer(context: FakeContext, session: Session, single: bool) -> None:
    queue = context.queue(single_active_consumer=single)
    seen = [queue.has_ready_consumer]
    first = add(queue, session, prefetch=1)
    seen.append(queue.has_ready_consumer)
    publish(context, queue)
    context.turn()
    seen.append(queue.has_ready_consumer)
    add(queue, session, "idle", prefetch=1)
    seen.append(queue.has_ready_consumer)
    session.ack(first)
    seen.append(queue.has_ready_consumer)
    assert seen == [False, True, False, not single, True]
