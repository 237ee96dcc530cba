"""x-max-length and x-max-length-bytes, by both ways of overflow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.messages import Sent, scattered
from warrenmq.core.message.batch import QueueEntry
from warrenmq.core.queue.limit import over_limit
from warrenmq.core.queue.rules import Rules

from .support import House, Session, add, made, publish, ready, take


@pytest.mark.parametrize(
    ("rules", "held", "coming", "over"),
    [
        (Rules(max_length=3), 2, 1, False),
        (Rules(max_length=3), 3, 1, True),
        (Rules(max_length=3), 1, 3, True),
        (Rules(max_length=0), 0, 1, True),
        (Rules(max_length_bytes=40), 3, 1, False),
        (Rules(max_length_bytes=39), 3, 1, True),
        (Rules(max_length=9, max_length_bytes=39), 3, 1, True),
        (Rules(max_length=3, max_length_bytes=400), 3, 1, True),
        (Rules(), 100, 1, False),
    ],
)
def test_room(rules: Rules, held: int, coming: int, over: bool) -> None:
    house = House()
    queue = house.queue(max_length_bytes=1_000_000)
    if held:
        publish(house, queue, held, body_bytes=10)
    entry = QueueEntry(made(house, coming, body_bytes=10), None)
    assert over_limit(queue, rules, entry) is over


def test_what_consumers_hold_takes_no_room() -> None:
    house = House()
    queue = house.queue(max_length=2, max_length_bytes=20, overflow="reject-publish")
    assert publish(house, queue, 2, body_bytes=10)
    assert not publish(house, queue, body_bytes=10)
    held = list(take(queue, 1))
    assert (queue.ready_count, queue.ready_bytes) == (1, 10)
    assert publish(house, queue, body_bytes=10)
    queue.requeue(held[0])
    assert (queue.ready_count, queue.ready_bytes) == (3, 30)
    assert not publish(house, queue, body_bytes=1)


def test_reject_publish_keeps_what_is_there() -> None:
    house = House()
    queue = house.queue(max_length=2, overflow="reject-publish")
    assert [publish(house, queue) for _ in range(4)] == [True, True, False, False]
    house.turn()
    assert (ready(queue), house.dead_letters) == ([1, 2], [])


def test_reject_publish_with_dead_letters() -> None:
    house = House()
    queue = house.queue(max_length=2, overflow="reject-publish-dlx", dead_letter_exchange="dead")
    assert [publish(house, queue) for _ in range(4)] == [True, True, False, False]
    assert (ready(queue), house.dead_letters) == ([1, 2], [(3, "maxlen"), (4, "maxlen")])


def test_drop_head_keeps_the_newest() -> None:
    house = House()
    queue = house.queue(max_length=3)
    publish(house, queue, 2)
    publish(house, queue, 5)
    assert (ready(queue), house.dead_letters) == (
        [5, 6, 7],
        [(at, "maxlen") for at in (1, 2, 3, 4)],
    )
    publish(house, queue)
    assert ready(queue) == [6, 7, 8]


def test_drop_head_by_bytes() -> None:
    house = House()
    queue = house.queue(max_length_bytes=25)
    publish(house, queue, 2, body_bytes=10)
    publish(house, queue, 1, body_bytes=4)
    assert (ready(queue), queue.ready_bytes) == ([1, 2, 3], 24)
    publish(house, queue, 1, body_bytes=10)
    assert (ready(queue), queue.ready_bytes) == ([2, 3, 4], 24)
    publish(house, queue, 1, body_bytes=26)
    assert (ready(queue), queue.ready_bytes) == ([], 0)


def test_a_queue_for_no_message_passes_on_to_who_is_ready() -> None:
    house, session = House(), Session()
    queue = house.queue(max_length=0)
    add(queue, session, prefetch=2)
    publish(house, queue, 3)
    house.turn()
    assert (session.numbers(), ready(queue), house.dead_letters) == ([1, 2], [], [(3, "maxlen")])


def test_nothing_is_dropped_before_consumers_had_their_share() -> None:
    house, session = House(), Session()
    queue = house.queue(max_length=10)
    add(queue, session)
    publish(house, queue, 5_000)
    house.turn(budget=100)
    assert (len(session.numbers()), house.dead_letters) == (5_000, [])


def test_a_returned_message_is_the_first_to_go() -> None:
    house = House()
    queue = house.queue(max_length=2)
    publish(house, queue, 2)
    (held,) = take(queue, 1)
    publish(house, queue)
    queue.requeue(held)
    house.turn()
    assert (ready(queue), house.dead_letters) == ([2, 3], [(1, "maxlen")])


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20), st.data())
def test_bytes_are_counted_through_every_way(sizes: list[int], data: st.DataObject) -> None:
    house = House()
    queue = house.queue(max_length_bytes=10_000)
    bodies = dict(enumerate(sizes, 1))
    batch = scattered([Sent(bytes(size)) for size in sizes])
    house.store.reserve(len(sizes))
    queue.enqueue(QueueEntry(batch, None))
    outstanding = list(take(queue, data.draw(st.integers(0, len(sizes)))))
    assert queue.ready_bytes == sum(bodies[number] for number in ready(queue))
    for messages in outstanding:
        (queue.requeue if data.draw(st.booleans()) else queue.return_undelivered)(messages)
        assert queue.ready_bytes == sum(bodies[number] for number in ready(queue))
    publish(house, queue, 3, body_bytes=7)
    assert queue.ready_bytes == sum(sizes) + 21
    queue.purge()
    assert queue.ready_bytes == 0
