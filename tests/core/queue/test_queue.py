from __future__ import annotations

from array import array
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from warrenmq.core.message.batch import MessageRange, QueueEntry
from warrenmq.core.queue.queue import DISPATCH_BYTES

from .support import House, Session, add, made, publish, ready, sequences, take

# -- order


def test_first_in_first_out_over_reads_and_selections() -> None:
    house = House()
    queue = house.queue()
    publish(house, queue, 2)
    queue.enqueue(QueueEntry(made(house, 5), array("H", [1, 3, 4])))
    publish(house, queue)
    assert (ready(queue), queue.ready_count) == ([1, 2, 4, 6, 7, 8], 6)
    assert [sequences(messages) for messages in take(queue, 5)] == [[1, 2], [4, 6, 7]]
    assert (ready(queue), queue.ready_count, queue.unacked_count) == ([8], 1, 5)


def test_an_empty_queue_has_nothing_to_take() -> None:
    house = House()
    queue = house.queue()
    assert (queue.dequeue(1), queue.ready_count, queue.consumer_count) == (None, 0, 0)
    publish(house, queue)
    assert sequences(*take(queue, 5)) == [1]
    assert queue.dequeue(1) is None


def test_requeued_messages_are_back_at_their_place() -> None:
    house = House()
    queue = house.queue()
    publish(house, queue, 4)
    ranges = [queue.dequeue(1) for _ in range(3)]
    publish(house, queue)
    for messages in (ranges[2], ranges[0]):
        assert messages is not None
        queue.requeue(messages)
    assert ready(queue) == [1, 3, 4, 5]
    assert [messages.redelivered for messages in take(queue, 4)] == [True, True, False, False]


def test_what_reached_nobody_comes_back_unflagged() -> None:
    house = House()
    queue = house.queue()
    publish(house, queue, 2)
    (messages,) = take(queue, 1)
    queue.return_undelivered(messages)
    assert (ready(queue), queue.unacked_count) == ([1, 2], 0)
    assert [messages.redelivered for messages in take(queue, 2)] == [False, False]


def test_redelivered_stays_once_it_is_set() -> None:
    house = House()
    queue = house.queue()
    publish(house, queue)
    for _ in range(3):
        (messages,) = take(queue, 1)
        queue.requeue(messages)
    (messages,) = take(queue, 1)
    queue.return_undelivered(messages)
    (messages,) = take(queue, 1)
    assert messages.redelivered


def test_large_messages_are_given_in_pieces() -> None:
    house = House()
    queue = house.queue()
    publish(house, queue, 100, body_bytes=10_000)
    publish(house, queue, 2, body_bytes=2 * DISPATCH_BYTES)
    counts = [messages.count for messages in take(queue, 102)]
    assert max(counts) * 10_000 <= DISPATCH_BYTES
    assert (sum(counts), counts[-2:]) == (102, [1, 1])


class Model(RuleBasedStateMachine):
    """A durable queue against two sets of numbers: what is ready, and what is out."""

    def __init__(self) -> None:
        super().__init__()
        self.house = House()
        self.queue = self.house.queue(durable=True, dead_letter_exchange="dead")
        self.ready: set[int] = set()
        self.again: set[int] = set()
        self.out: list[MessageRange] = []
        self.settled: list[int] = []
        self.rejected: list[tuple[int, str]] = []

    @rule(count=st.integers(1, 6))
    def publish(self, count: int) -> None:
        entry = QueueEntry(made(self.house, count), None)
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
        assert self.house.settled == self.settled
        assert self.house.dead_letters == self.rejected


TestModel: Any = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=30)


# -- what becomes of messages


def test_a_queue_that_is_not_durable_leaves_the_store_alone() -> None:
    house = House()
    queue = house.queue()
    publish(house, queue, 3)
    (messages,) = take(queue, 1)
    queue.settle(messages)
    queue.purge()
    assert (house.settled, queue.unacked_count) == ([], 0)


def test_a_purge_spares_what_is_out() -> None:
    house = House()
    queue = house.queue(durable=True)
    publish(house, queue, 5)
    (messages,) = take(queue, 2)
    assert queue.purge() == 3
    assert (queue.ready_count, queue.unacked_count, house.settled) == (0, 2, [3, 4, 5])
    queue.requeue(messages)
    publish(house, queue)
    assert ready(queue) == [1, 2, 6]


def test_nothing_comes_back_to_a_deleted_queue() -> None:
    house = House()
    queue = house.queue()
    publish(house, queue, 3)
    first, second, third = (queue.dequeue(1) for _ in range(3))
    assert first is not None and second is not None and third is not None
    queue.deleted = True
    queue.requeue(first)
    queue.return_undelivered(second)
    queue.reject(third)
    assert (queue.ready_count, queue.unacked_count, house.dead_letters) == (0, 0, [])


# -- whose turn it is


def counts(session: Session, consumers: list[Any]) -> list[int]:
    return [len(session.numbers(consumer)) for consumer in consumers]


CUTS = st.sets(st.integers(1, 99), max_size=20).map(
    lambda cuts: [end - start for start, end in pairwise([0, *sorted(cuts), 100])]
)
"""A hundred messages, cut into reads."""


@pytest.mark.parametrize("no_ack", [False, True])
@given(CUTS, st.booleans())
def test_ten_consumers_share_a_hundred_messages(
    no_ack: bool, reads: list[int], turn_by_turn: bool
) -> None:
    house, session = House(), Session()
    queue = house.queue()
    consumers = [add(queue, session, str(at), no_ack=no_ack) for at in range(10)]
    for count in reads:
        publish(house, queue, count)
        if turn_by_turn:
            house.turn()
    house.turn()
    assert counts(session, consumers) == [10] * 10
    assert sorted(session.numbers()) == list(range(1, 101))
    assert house.active == []


@given(
    st.integers(1, 12), st.lists(st.integers(1, 150), min_size=1, max_size=6), st.integers(1, 200)
)
def test_shares_differ_by_one_at_most(members: int, reads: list[int], budget: int) -> None:
    house, session = House(), Session()
    queue = house.queue()
    consumers = [add(queue, session, str(at)) for at in range(members)]
    for count in reads:
        publish(house, queue, count)
        house.turn(budget)
        given = counts(session, consumers)
        assert max(given) - min(given) <= 1
    assert sum(given) == sum(reads)


@given(st.lists(st.integers(1, 5), min_size=2, max_size=6), st.integers(1, 60))
def test_each_consumer_gets_each_part_in_order(prefetches: list[int], count: int) -> None:
    house, session = House(), Session()
    queue = house.queue()
    consumers = [add(queue, session, prefetch=prefetch) for prefetch in prefetches]
    publish(house, queue, count)
    house.turn()
    out = counts(session, consumers)
    assert sum(out) == min(count, sum(prefetches))
    assert all(held <= prefetch for held, prefetch in zip(out, prefetches, strict=True))
    assert sorted(session.numbers()) == list(range(1, sum(out) + 1))
    for consumer in consumers:
        assert session.numbers(consumer) == sorted(session.numbers(consumer))


def test_prefetch_one_goes_round() -> None:
    house, session = House(), Session()
    queue = house.queue()
    consumers = [add(queue, session, str(at), prefetch=1) for at in range(3)]
    publish(house, queue, 9)
    house.turn()
    for _ in range(2):
        for consumer in consumers:
            held = session.numbers(consumer)
            session.ack(consumer)
            house.turn()
            assert session.numbers(consumer) == [held[0] + 3]
    assert queue.ready_count == 0


def test_a_limit_over_the_whole_session() -> None:
    house, session = House(), Session(prefetch=5)
    queue = house.queue()
    consumers = [add(queue, session, str(at), prefetch=4) for at in range(2)]
    publish(house, queue, 20)
    house.turn()
    assert (session.unacked_count, sum(counts(session, consumers))) == (5, 5)
    assert max(counts(session, consumers)) <= 4


def test_the_highest_priority_first_then_the_next() -> None:
    house, session = House(), Session()
    queue = house.queue()
    low = add(queue, session, "low", priority=-1)
    high = [add(queue, session, f"high{at}", priority=5, prefetch=2) for at in range(2)]
    publish(house, queue, 6)
    house.turn()
    assert session.numbers(low) == [5, 6]
    assert [session.numbers(one) for one in high] == [[1, 2], [3, 4]]
    session.ack(high[1])
    publish(house, queue, 3)
    house.turn()
    assert (session.numbers(high[1]), session.numbers(low)) == ([7, 8], [5, 6, 9])


def test_a_session_that_does_not_read_costs_the_others_nothing() -> None:
    house, slow, quick = House(), Session(room=3), Session()
    queue = house.queue()
    stuck = add(queue, slow, "slow")
    add(queue, quick, "quick")
    publish(house, queue, 100)
    house.turn()
    assert len(slow.numbers()) + len(quick.numbers()) == 100
    publish(house, queue, 10)
    house.turn()
    assert len(slow.numbers()) + len(quick.numbers()) == 110
    assert not stuck.open
    before = len(slow.numbers())
    slow.room = 1_000
    stuck.reopen()
    publish(house, queue, 10)
    house.turn()
    assert len(slow.numbers()) == before + 5


def test_a_budget_ends_a_turn_and_the_rest_follows() -> None:
    house, session = House(), Session()
    queue = house.queue()
    add(queue, session)
    for _ in range(10):
        publish(house, queue, 10)
    assert queue.dispatch(35)
    assert len(session.numbers()) == 35
    assert not queue.dispatch(65)
    assert not queue.dispatch(10)
    assert session.numbers() == list(range(1, 101))


def test_a_message_that_comes_in_wakes_a_queue_with_consumers_only() -> None:
    house, session = House(), Session()
    queue = house.queue()
    publish(house, queue)
    assert house.active == []
    add(queue, session)
    assert house.active == [queue]
    house.turn()
    publish(house, queue)
    publish(house, queue)
    assert house.active == [queue]
    house.turn()
    assert session.numbers() == [1, 2, 3]


def test_requeued_messages_go_to_the_next_in_turn() -> None:
    house, session = House(), Session()
    queue = house.queue()
    first = add(queue, session, "first", prefetch=1)
    second = add(queue, session, "second", prefetch=1)
    publish(house, queue)
    house.turn()
    for messages in session.take_back(first):
        queue.requeue(messages)
    first.reopen()
    house.turn()
    assert (session.numbers(first), session.numbers(second)) == ([], [1])
    assert session.redelivered() == [True]


# -- consumers come and go


def test_an_exclusive_consumer_is_known_while_it_is_there() -> None:
    queue, session = House().queue(), Session()
    consumer = add(queue, session, exclusive=True)
    assert queue.exclusive_consumer is consumer
    queue.remove_consumer(consumer)
    assert queue.exclusive_consumer is None


@pytest.mark.parametrize("auto_delete", [False, True])
def test_the_last_consumer_takes_an_auto_delete_queue_with_it(auto_delete: bool) -> None:
    house, session = House(), Session()
    queue = house.queue(auto_delete=auto_delete)
    publish(house, queue)
    list(take(queue, 1))
    assert house.dropped == []
    first, second = add(queue, session, "1"), add(queue, session, "2")
    assert queue.consumer_count == 2
    queue.remove_consumer(first)
    queue.remove_consumer(first)
    assert house.dropped == []
    queue.remove_consumer(second)
    queue.remove_consumer(second)
    assert house.dropped == ([queue] if auto_delete else [])
    assert queue.consumer_count == 0


def test_a_queue_that_is_deleted_already_is_not_dropped_again() -> None:
    house = House()
    queue = house.queue(auto_delete=True)
    consumer = add(queue, Session())
    queue.deleted = True
    queue.remove_consumer(consumer)
    assert house.dropped == []


def test_a_consumer_that_left_gets_nothing_more() -> None:
    house, session = House(), Session()
    queue = house.queue()
    left, stays = add(queue, session, "left"), add(queue, session, "stays")
    queue.remove_consumer(left)
    publish(house, queue, 4)
    house.turn()
    assert (session.numbers(left), session.numbers(stays)) == ([], [1, 2, 3, 4])


def test_who_is_ready_now() -> None:
    house, session = House(), Session()
    queue = house.queue()
    seen = [queue.has_ready_consumer]
    busy = add(queue, session, "busy", priority=5, prefetch=1)
    seen.append(queue.has_ready_consumer)
    publish(house, queue)
    seen.append(queue.has_ready_consumer)
    house.turn()
    seen.append(queue.has_ready_consumer)
    assert seen == [False, True, False, False]
    free = add(queue, session, "free", prefetch=1)
    seen = [queue.has_ready_consumer]
    queue.remove_consumer(free)
    seen.append(queue.has_ready_consumer)
    session.ack(busy)
    seen.append(queue.has_ready_consumer)
    session.room = 0
    seen.append(queue.has_ready_consumer)
    assert seen == [True, False, True, False]


def test_who_has_to_be_reopened_is_not_ready() -> None:
    house, session = House(), Session(room=0)
    queue = house.queue()
    backed_off = add(queue, session)
    publish(house, queue)
    house.turn()
    list(take(queue, 1))
    session.room = 10
    seen = [queue.has_ready_consumer]
    backed_off.reopen()
    seen.append(queue.has_ready_consumer)
    assert seen == [False, True]


# -- x-expires


def test_an_idle_queue_ends() -> None:
    house = House()
    queue = house.queue(expires=100)
    house.wait(99)
    assert house.dropped == []
    house.wait(1)
    assert house.dropped == [queue]
    assert house.timers.next_ms is None


def test_a_use_puts_the_end_off() -> None:
    house = House()
    queue = house.queue(expires=100)
    house.wait(60)
    queue.note_use()
    house.wait(99)
    assert house.dropped == []
    house.wait(1)
    assert house.dropped == [queue]


def test_messages_do_not_put_the_end_off() -> None:
    house = House()
    queue = house.queue(expires=100)
    house.wait(60)
    publish(house, queue)
    house.wait(40)
    assert house.dropped == [queue]


def test_with_a_consumer_it_is_not_idle() -> None:
    house = House()
    queue = house.queue(expires=100)
    consumer = add(queue, Session())
    house.wait(1_050)
    assert house.dropped == []
    queue.remove_consumer(consumer)
    house.wait(99)
    assert house.dropped == []
    house.wait(1)
    assert house.dropped == [queue]
