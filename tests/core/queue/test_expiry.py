"""TTL of queues and of messages, on a manual clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.held import held, held_of
from warrenmq.core.message.queue_entry import MessageRange, QueueEntry
from warrenmq.core.queue.backlog import EMPTIED_MAX
from warrenmq.core.queue.expiry import DUE_AT_ONCE
from warrenmq.core.queue.rules import Rules
from warrenmq.core.timers import Timer
from warrenmq.core.wire.properties import PLAIN

from .support import FakeContext, Session, add, expiring, made, publish, ready, sequences, take


def expired(context: FakeContext) -> list[int]:
    assert {reason for _, reason in context.dead_letters} <= {"expired"}
    return [number for number, _ in context.dead_letters]


def test_messages_expire_by_deadline_and_arrival(context: FakeContext) -> None:
    queue = context.queue(message_ttl=30)
    publish(context, queue)
    publish(context, queue, attributes=expiring("9999"))
    publish(context, queue, 2)
    publish(context, queue, attributes=expiring("20"))
    publish(context, queue, attributes=expiring("9999"))
    context.wait(30)
    assert (ready(queue), expired(context)) == ([], [5, 1, 2, 3, 4, 6])


# -- a TTL of 0: to somebody who is ready now, or to nobody


@pytest.mark.parametrize("own", [False, True])
def test_ttl_0_ignores_the_budget(context: FakeContext, session: Session, own: bool) -> None:
    queue = context.queue() if own else context.queue(message_ttl=0)
    consumer = add(queue, session)
    publish(context, queue, 1_000, attributes=expiring("0") if own else PLAIN)
    for _ in range(2):
        context.turn(budget=10)
        assert (len(session.numbers()), expired(context)) == (1_000, [])
        for messages in session.take_back(consumer):
            queue.requeue(messages)
        context.now_ms += 1


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
def test_messages_expire_exactly_when_due(
    ttl: int | None, steps: list[tuple[str, int, str]]
) -> None:
    context = FakeContext()
    queue = context.queue() if ttl is None else context.queue(message_ttl=ttl)
    due: dict[int, int] = {}
    messages: list[MessageRange] = []
    for action, number, own in steps:
        if action == "publish":
            batch = made(context, number, expiring(own))
            deadline = context.now_ms + min(int(own), 99 if ttl is None else ttl)
            due |= dict.fromkeys(range(batch.sequence, batch.sequence + number), deadline)
            queue.enqueue(QueueEntry(batch, None))
            context.turn()
        elif action == "wait":
            context.wait(number)
        elif action == "late":
            # Time has passed and nothing has run since.
            context.now_ms += number
        elif action == "take":
            taken = list(take(queue, number))
            assert all(due[at] >= context.now_ms for at in sequences(*taken))
            messages += taken
        elif messages:
            queue.requeue(messages.pop(0))
            context.turn()
        outstanding = sequences(*messages)
        waiting = [at for at, ms in due.items() if ms > context.now_ms and at not in outstanding]
        assert [at for at in ready(queue) if due[at] > context.now_ms] == waiting
        if action == "wait":
            assert sorted([*expired(context), *outstanding, *waiting]) == sorted(due)
    context.wait(1_000)
    assert ready(queue) == []
    assert sorted([*expired(context), *sequences(*messages)]) == sorted(due)


# -- what is not kept


def test_consumed_messages_leave_the_heap(context: FakeContext, session: Session) -> None:
    queue = context.queue()
    consumer = add(queue, session)
    for _ in range(2_000):
        publish(context, queue, attributes=expiring("86400000"))
        context.turn()
        session.ack(consumer)
    assert held_of(queue, MessageRange) <= 65
    assert held_of(context, Timer) == 1


def test_a_requeued_message_is_in_the_heap_once(context: FakeContext) -> None:
    queue = context.queue()
    publish(context, queue, 3, attributes=expiring("86400000"))
    before = len(held(queue))
    for _ in range(2_000):
        (messages,) = take(queue, 1)
        queue.requeue(messages)
    assert len(held(queue)) < before + 300
    context.wait(86_400_000)
    assert sorted(expired(context)) == [1, 2, 3]


def test_a_purged_queue_has_no_timer(context: FakeContext) -> None:
    queue = context.queue(message_ttl=1_000)
    publish(context, queue, attributes=expiring("500"))
    (messages,) = take(queue, 1)
    publish(context, queue, 2)
    queue.purge()
    assert context.timers.next_ms is None
    queue.requeue(messages)
    context.wait(499)
    assert ready(queue) == [1]
    context.wait(1)
    assert (ready(queue), expired(context)) == ([], [1])


@pytest.mark.parametrize("policy_first", [True, False])
def test_a_requeued_message_expired_by_a_new_ttl(
    context: FakeContext, session: Session, policy_first: bool
) -> None:
    queue = context.queue()
    ttl = Rules(message_ttl_ms=context.now_ms + 50)  # Batches made here have come at 0.
    if policy_first:
        queue.apply(ttl)
    consumer = add(queue, session)
    publish(context, queue)
    context.turn()
    queue.apply(ttl)
    context.wait(context.now_ms + 100)
    for messages in session.take_back(consumer):
        queue.requeue(messages)
    context.turn()
    assert (session.numbers(), expired(context)) == ([], [1])


# -- many


def test_expiry_is_bounded_per_turn(context: FakeContext) -> None:
    queue = context.queue()
    for _ in range(DUE_AT_ONCE + 500):
        publish(context, queue, attributes=expiring("10"))
    context.turn()
    context.now_ms += 10
    queue.dispatch(1)
    assert len(expired(context)) == DUE_AT_ONCE
    assert queue.active, "it is pumped again"
    context.turn()
    assert len(expired(context)) == DUE_AT_ONCE + 500


def test_expired_ranges_after_the_head_are_removed(context: FakeContext) -> None:
    queue = context.queue()
    publish(context, queue)
    for _ in range(50):
        publish(context, queue, 20, attributes=expiring("10"))
        for _ in range(20):
            publish(context, queue, attributes=expiring("5"))
        context.wait(10)
    assert (ready(queue), len(expired(context))) == ([1], 2_000)
    assert held_of(queue, MessageRange) <= EMPTIED_MAX + 2
