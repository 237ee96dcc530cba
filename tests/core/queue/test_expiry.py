"""TTL of a queue and of a message. Time is the house's own."""

from __future__ import annotations

import gc
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.message.batch import MessageRange, QueueEntry
from warrenmq.core.queue.backlog import EMPTIED_MAX
from warrenmq.core.queue.expiry import DUE_AT_ONCE
from warrenmq.core.queue.queue import Queue
from warrenmq.core.queue.rules import Rules
from warrenmq.core.wire.properties import MessageAttributes

from .support import House, Session, add, expiring, made, publish, ready, sequences, take


def expired(house: House) -> list[int]:
    assert {reason for _, reason in house.dead_letters} <= {"expired"}
    return [number for number, _ in house.dead_letters]


def test_a_queues_ttl_entries_from_arrival() -> None:
    house = House()
    queue = house.queue(message_ttl=100)
    publish(house, queue, 2)
    house.wait(60)
    publish(house, queue)
    house.wait(39)
    assert (ready(queue), expired(house)) == ([1, 2, 3], [])
    house.wait(1)
    assert (ready(queue), expired(house)) == ([3], [1, 2])
    house.wait(60)
    assert (ready(queue), expired(house)) == ([], [1, 2, 3])
    assert house.timers.next_ms is None


def test_a_messages_own_expiration_ends_it_anywhere() -> None:
    house = House()
    queue = house.queue()
    publish(house, queue)
    publish(house, queue, attributes=expiring("50"))
    publish(house, queue, attributes=expiring("20"))
    publish(house, queue)
    house.wait(20)
    assert (ready(queue), expired(house)) == ([1, 2, 4], [3])
    house.wait(29)
    assert ready(queue) == [1, 2, 4]
    house.wait(1)
    assert (ready(queue), expired(house)) == ([1, 4], [3, 2])


def test_what_ends_together_ends_in_order() -> None:
    """By deadline, and then as it came, whatever set the deadline."""
    house = House()
    queue = house.queue(message_ttl=30)
    publish(house, queue)
    publish(house, queue, attributes=expiring("9999"))
    publish(house, queue, 2)
    publish(house, queue, attributes=expiring("20"))
    publish(house, queue, attributes=expiring("9999"))
    house.wait(30)
    assert (ready(queue), expired(house)) == ([], [5, 1, 2, 3, 4, 6])


@pytest.mark.parametrize(("ttl", "own", "effective"), [(100, "30", 30), (30, "100", 30)])
def test_the_shorter_of_both_counts(ttl: int, own: str, effective: int) -> None:
    house = House()
    queue = house.queue(message_ttl=ttl)
    publish(house, queue, attributes=expiring(own))
    house.wait(effective - 1)
    assert ready(queue) == [1]
    house.wait(1)
    assert (ready(queue), expired(house)) == ([], [1])


def test_an_expired_message_is_never_delivered() -> None:
    house, session = House(), Session()
    queue = house.queue(message_ttl=100)
    publish(house, queue, 2)
    house.now_ms += 101
    add(queue, session)
    publish(house, queue)
    # No timer has run: what is due is seen when it would be given out.
    house.turn()
    assert (session.numbers(), expired(house)) == ([3], [1, 2])


def test_get_does_not_see_an_expired_message() -> None:
    house = House()
    queue = house.queue()
    publish(house, queue, 3, attributes=expiring("10"))
    publish(house, queue)
    house.now_ms += 11
    assert sequences(*take(queue, 5)) == [4]
    assert expired(house) == [1, 2, 3]


def test_delivered_messages_do_not_expire() -> None:
    house, session = House(), Session()
    queue = house.queue(message_ttl=100)
    add(queue, session)
    publish(house, queue)
    house.turn()
    house.wait(1_000)
    assert (session.numbers(), expired(house), queue.unacked_count) == ([1], [], 1)


@pytest.mark.parametrize("own", [False, True])
def test_a_requeued_message_keeps_its_deadline(own: bool) -> None:
    house = House()
    queue = house.queue() if own else house.queue(message_ttl=100)
    publish(house, queue, 3, attributes=expiring("100") if own else expiring("1000"))
    held = list(take(queue, 2))
    house.wait(60)
    for messages in held:
        queue.requeue(messages)
    house.wait(39)
    assert ready(queue) == [1, 2, 3]
    house.wait(1)
    assert (ready(queue), sorted(expired(house))) == ([], [1, 2, 3])


def test_a_message_that_comes_back_too_late_expires_at_once() -> None:
    house, session = House(), Session()
    queue = house.queue(message_ttl=100)
    publish(house, queue)
    (held,) = take(queue, 1)
    house.wait(500)
    add(queue, session)
    queue.requeue(held)
    house.turn()
    assert (session.numbers(), expired(house)) == ([], [1])


# -- a TTL of 0: to somebody who is ready now, or to nobody


def zero(house: House, own: bool) -> Queue:
    return house.queue() if own else house.queue(message_ttl=0)


@pytest.mark.parametrize("own", [False, True])
def test_nobody_is_ready(own: bool) -> None:
    house = House()
    queue = zero(house, own)
    publish(house, queue, 2, attributes=expiring("0"))
    house.turn()
    assert (ready(queue), expired(house)) == ([], [1, 2])


@pytest.mark.parametrize("own", [False, True])
def test_somebody_is_ready(own: bool) -> None:
    house, session = House(), Session()
    queue = zero(house, own)
    add(queue, session)
    publish(house, queue, 2, attributes=expiring("0"))
    house.turn()
    assert (session.numbers(), expired(house)) == ([1, 2], [])


@pytest.mark.parametrize("own", [False, True])
def test_somebody_is_ready_for_a_part(own: bool) -> None:
    house, session = House(), Session()
    queue = zero(house, own)
    add(queue, session, prefetch=2)
    publish(house, queue, 5, attributes=expiring("0"))
    house.turn()
    assert (session.numbers(), expired(house)) == ([1, 2], [3, 4, 5])


@pytest.mark.parametrize("own", [False, True])
def test_who_is_ready_gets_more_than_a_turns_budget(own: bool) -> None:
    house, session = House(), Session()
    queue = zero(house, own)
    add(queue, session)
    publish(house, queue, 1_000, attributes=expiring("0"))
    house.turn(budget=10)
    assert (len(session.numbers()), expired(house)) == (1_000, [])


# -- any mixture


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 4), st.sampled_from(["0", "7", "30", "99"])),
        st.tuples(st.just("wait"), st.integers(1, 40), st.just("")),
        st.tuples(st.just("late"), st.integers(1, 40), st.just("")),
        st.tuples(st.just("take"), st.integers(1, 6), st.just("")),
        st.tuples(st.just("return"), st.just(0), st.just("")),
    ),
    max_size=25,
)


@given(st.none() | st.integers(0, 60), STEPS)
def test_each_message_goes_when_it_is_due(
    ttl: int | None, steps: list[tuple[str, int, str]]
) -> None:
    house = House()
    queue = house.queue() if ttl is None else house.queue(message_ttl=ttl)
    due: dict[int, int] = {}
    held: list[MessageRange] = []
    for action, number, own in steps:
        if action == "publish":
            batch = made(house, number, expiring(own))
            deadline = house.now_ms + min(int(own), 99 if ttl is None else ttl)
            due |= dict.fromkeys(range(batch.sequence, batch.sequence + number), deadline)
            queue.enqueue(QueueEntry(batch, None))
            house.turn()
        elif action == "wait":
            house.wait(number)
        elif action == "late":
            # Time has passed and nothing has run since.
            house.now_ms += number
        elif action == "take":
            taken = list(take(queue, number))
            assert all(due[at] >= house.now_ms for at in sequences(*taken))
            held += taken
        elif held:
            queue.requeue(held.pop(0))
            house.turn()
        outstanding = sequences(*held)
        waiting = [at for at, ms in due.items() if ms > house.now_ms and at not in outstanding]
        assert [at for at in ready(queue) if due[at] > house.now_ms] == waiting
        if action == "wait":
            assert sorted([*expired(house), *outstanding, *waiting]) == sorted(due)
    house.wait(1_000)
    assert ready(queue) == []
    assert sorted([*expired(house), *sequences(*held)]) == sorted(due)


# -- what is not kept


def test_what_was_consumed_is_let_go_long_before_its_deadline() -> None:
    house, session = House(), Session()
    queue = house.queue()
    consumer = add(queue, session)
    for _ in range(2_000):
        publish(house, queue, attributes=expiring("86400000"))
        house.turn()
        session.ack(consumer)
    assert queue.expiry is not None
    assert len(queue.expiry._heap) <= 64
    assert len(house.timers._heap) == 1


def test_one_that_is_returned_again_and_again_is_noted_once() -> None:
    house = House()
    queue = house.queue()
    publish(house, queue, 3, attributes=expiring("86400000"))
    for _ in range(2_000):
        (held,) = take(queue, 1)
        queue.requeue(held)
    assert queue.expiry is not None
    assert len(queue.expiry._heap) <= 65
    house.wait(86_400_000)
    assert sorted(expired(house)) == [1, 2, 3]


def test_a_purged_queue_waits_for_nothing() -> None:
    house = House()
    queue = house.queue(message_ttl=1_000)
    publish(house, queue, attributes=expiring("500"))
    (held,) = take(queue, 1)
    publish(house, queue, 2)
    queue.purge()
    assert house.timers.next_ms is None
    queue.requeue(held)
    house.wait(499)
    assert ready(queue) == [1]
    house.wait(1)
    assert (ready(queue), expired(house)) == ([], [1])


class Owner:
    """Something that is let go together with a queue."""


@pytest.mark.parametrize("own", ["3600000", "99999999"])
def test_a_deleted_queue_is_let_go_long_before_its_deadlines(own: str) -> None:
    house, owner = House(), Owner()
    queue = house.queue(message_ttl=86_400_000, expires=86_400_000)
    queue.owner = owner
    watched = ref(owner)
    publish(house, queue, 3, attributes=expiring(own))
    house.turn()
    # As a virtual host does.
    queue.deleted = True
    queue.purge()
    del queue, owner
    gc.collect()
    assert watched() is None
    assert house.timers.next_ms is None


# -- a TTL of 0 comes back


@pytest.mark.parametrize("own", [False, True])
def test_a_requeued_one_goes_to_whoever_is_ready(own: bool) -> None:
    """amqp.md, exactness: a requeued TTL-0 message goes to a ready consumer if there is one."""
    house, session, other = House(), Session(), Session()
    queue = zero(house, own)
    consumer = add(queue, session, prefetch=2)
    publish(house, queue, 2, attributes=expiring("0"))
    house.turn()
    house.wait(500)
    add(queue, other, tag="other")
    for messages in session.take_back(consumer):
        queue.requeue(messages)
    house.turn()
    assert (sorted(session.numbers() + other.numbers()), expired(house)) == ([1, 2], [])
    assert ready(queue) == []


@pytest.mark.parametrize("own", [False, True])
def test_a_requeued_one_expires_if_nobody_is_ready(own: bool) -> None:
    house, session = House(), Session()
    queue = zero(house, own)
    consumer = add(queue, session)
    publish(house, queue, 2, attributes=expiring("0"))
    house.turn()
    house.wait(500)
    ranges = session.take_back(consumer)
    session.room = 0
    for messages in ranges:
        queue.requeue(messages)
    assert ready(queue) == [1, 2]
    house.turn()
    assert (ready(queue), sorted(expired(house))) == ([], [1, 2])


def test_requeued_ones_go_out_beyond_a_turns_budget() -> None:
    """All of them are asked about in one dispatch: a second one would be too late."""
    house, session = House(), Session()
    queue = zero(house, own=False)
    consumer = add(queue, session)
    publish(house, queue, 300)
    house.turn()
    for messages in session.take_back(consumer):
        queue.requeue(messages)
    house.now_ms += 1
    house.turn(budget=10)
    assert (len(session.numbers()), expired(house)) == (300, [])


# -- however it came there


def test_no_expired_message_goes_to_a_busy_consumer() -> None:
    """One that always has something to do: what is behind it runs out meanwhile."""
    house, session = House(), Session()
    queue = house.queue(message_ttl=50)
    consumer = add(queue, session, prefetch=1)
    for _ in range(10):
        publish(house, queue)
    house.turn()
    while session.got:
        house.now_ms += 20  # and no timer has run
        session.ack(consumer)
        house.turn()
    # The first at 0, then one each 20 ms, until the others' 50 ms were over.
    assert sorted(expired(house)) == [4, 5, 6, 7, 8, 9, 10]


def test_priorities_do_not_hide_an_expired_message() -> None:
    house, session = House(), Session()
    queue = house.queue(max_priority=5, message_ttl=50)
    publish(house, queue, attributes=MessageAttributes(priority=1))
    house.wait(30)
    publish(house, queue, attributes=MessageAttributes(priority=4))
    house.wait(20)
    assert (ready(queue), expired(house)) == ([2], [1])
    house.now_ms += 31
    add(queue, session)
    house.turn()
    assert (session.numbers(), expired(house)) == ([], [1, 2])


def test_another_ttl_counts_for_what_comes_back() -> None:
    """A policy came while messages were out: what stands behind them must not wait for them."""
    house = House()
    queue = house.queue(message_ttl=10_000)
    publish(house, queue)
    (held,) = take(queue, 1)
    publish(house, queue)
    # Batches made here have come at 0.
    queue.apply(Rules(message_ttl_ms=house.now_ms + 100))
    queue.requeue(held)
    house.turn()
    assert ready(queue) == [1, 2]
    house.wait(100)
    assert (ready(queue), sorted(expired(house))) == ([], [1, 2])


@pytest.mark.parametrize("policy_first", [True, False])
def test_what_comes_back_too_late_under_another_ttl_is_not_delivered(policy_first: bool) -> None:
    """Though a consumer is ready in that very millisecond."""
    house, session = House(), Session()
    queue = house.queue()
    ttl = Rules(message_ttl_ms=house.now_ms + 50)  # Batches made here have come at 0.
    if policy_first:
        queue.apply(ttl)
    consumer = add(queue, session)
    publish(house, queue)
    house.turn()
    queue.apply(ttl)
    house.wait(house.now_ms + 100)
    for messages in session.take_back(consumer):
        queue.requeue(messages)
    house.turn()
    assert (session.numbers(), expired(house)) == ([], [1])


def test_no_ttl_any_more_counts_for_what_comes_back() -> None:
    house = House()
    queue = house.queue(message_ttl=100)
    publish(house, queue, 2)
    (held,) = take(queue, 1)
    queue.apply(None)
    queue.requeue(held)
    house.wait(1_000)
    assert (ready(queue), expired(house)) == ([1, 2], [])


# -- many


def test_so_many_at_once_take_several_turns() -> None:
    house = House()
    queue = house.queue()
    for _ in range(DUE_AT_ONCE + 500):
        publish(house, queue, attributes=expiring("10"))
    house.turn()
    house.now_ms += 10
    queue.dispatch(1)
    assert len(expired(house)) == DUE_AT_ONCE
    assert queue.active, "it is pumped again"
    house.turn()
    assert len(expired(house)) == DUE_AT_ONCE + 500


def test_what_expired_behind_one_that_stays_is_let_go() -> None:
    """A message nobody takes at the head, and any number that expire behind it."""
    house = House()
    queue = house.queue()
    publish(house, queue)
    for _ in range(50):
        publish(house, queue, 20, attributes=expiring("10"))
        for _ in range(20):
            publish(house, queue, attributes=expiring("5"))
        house.wait(10)
    assert (ready(queue), len(expired(house))) == ([1], 2_000)
    assert len(queue.backlog._ready) <= EMPTIED_MAX + 2
