from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.queue.consumer import Consumer, ConsumerRing

from .support import House, Session, add, publish


def consumer(
    session: Session, prefetch: int = 0, priority: int = 0, no_ack: bool = False
) -> Consumer:
    queue = House().queue()
    return Consumer("c", queue, session, prefetch=prefetch, priority=priority, no_ack=no_ack)


@pytest.mark.parametrize(
    ("own", "own_unacked", "shared", "shared_unacked", "credit"),
    [
        (0, 500, 0, 500, 1_000_000),
        (10, 0, 0, 500, 10),
        (10, 7, 0, 500, 3),
        (10, 10, 0, 500, 0),
        (0, 500, 10, 4, 6),
        (10, 7, 5, 4, 1),
        (3, 1, 50, 4, 2),
        (5, 9, 0, 0, -4),
    ],
)
def test_credit(own: int, own_unacked: int, shared: int, shared_unacked: int, credit: int) -> None:
    session = Session(prefetch=shared, unacked_count=shared_unacked)
    tested = consumer(session, prefetch=own)
    tested.unacked_count = own_unacked
    assert tested.credit() == credit


@pytest.mark.parametrize(("unacked_count", "credit"), [(2, 1_000_000), (3, 0), (4, -1)])
def test_without_acks_the_session_s_limit_only_holds(unacked_count: int, credit: int) -> None:
    session = Session(prefetch=3, unacked_count=unacked_count)
    assert consumer(session, prefetch=1, no_ack=True).credit() == credit


@pytest.mark.parametrize("no_ack", [False, True])
def test_a_session_that_cannot_be_written_to_has_no_credit(no_ack: bool) -> None:
    assert consumer(Session(room=0), no_ack=no_ack).credit() == 0


# -- the ring


def order(ring: ConsumerRing) -> list[Consumer]:
    line = ring.ready_consumers()
    return [] if line is None else [one for one in line if one.open]


def _comparing(compared: list[object]) -> Callable[[Consumer, object], bool]:
    def equal(self: Consumer, other: object) -> bool:
        compared.append(other)
        return self is other

    return equal


def test_many_leave_without_a_search_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an order that is not that of the line, as when a connection with all of them ends."""
    compared: list[object] = []
    monkeypatch.setattr(Consumer, "__eq__", _comparing(compared))
    monkeypatch.setattr(Consumer, "__hash__", object.__hash__)
    ring, session = ConsumerRing(), Session()
    members = [consumer(session) for _ in range(200)]
    for one in members:
        ring.add(one)
    line = ring.ready_consumers()
    assert line is not None
    line.rotate(100)
    for one in members[:150]:
        ring.remove(one)
    assert len(compared) < 10 * len(members)
    assert order(ring) == members[150:]


def test_a_ring_of_none() -> None:
    ring = ConsumerRing()
    assert (ring.ready_consumers(), ring.members) == (None, {})


def test_the_highest_priority_that_is_open_has_the_line() -> None:
    ring, session = ConsumerRing(), Session()
    low, high, middle, other = (consumer(session, priority=at) for at in (-5, 10, 0, 10))
    for member in (low, high, middle, other):
        ring.add(member)
    assert order(ring) == [high, other]
    ring.remove(high)
    assert order(ring) == [other]
    ring.remove(other)
    assert order(ring) == [middle]
    ring.add(high)
    assert order(ring) == [high]
    assert list(ring.members) == [low, middle, high]


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "remove", "close", "reopen"]), st.integers(0, 5)),
        max_size=60,
    )
)
def test_any_coming_and_going(steps: list[tuple[str, int]]) -> None:
    ring, session = ConsumerRing(), Session()
    everyone = [consumer(session, priority=at % 3) for at in range(6)]
    opened: list[Consumer] = []
    members: list[Consumer] = []
    for action, at in steps:
        one = everyone[at]
        if action == "add" and one not in members:
            ring.add(one)
            members.append(one)
            opened.append(one)
        elif action == "remove" and one in members:
            ring.remove(one)
            members.remove(one)
            opened = [other for other in opened if other is not one]
        elif action == "close" and (line := ring.ready_consumers()) is not None:
            # As a queue does with one that has no credit left.
            closed = line.popleft()
            closed.open = False
            opened.remove(closed)
        elif action == "reopen" and one in members and not one.open:
            ring.open(one)
            opened.append(one)
        assert list(ring.members) == members
        assert [one.open for one in everyone] == [one in opened for one in everyone]
        highest = max((one.priority for one in opened), default=None)
        assert order(ring) == [one for one in opened if one.priority == highest]


def test_priorities_that_are_gone_leave_nothing() -> None:
    ring, session = ConsumerRing(), Session()
    for priority in range(1_000):
        closed = consumer(session, priority=priority)
        ring.add(closed)
        if priority % 2:
            line = ring.ready_consumers()
            assert line is not None
            line.popleft().open = False
        ring.remove(closed)
    assert (ring.ready_consumers(), ring._levels, ring._open) == (None, [], {})


def test_all_of_a_level_can_leave_while_none_is_open() -> None:
    ring, session = ConsumerRing(), Session()
    everyone = [consumer(session, priority=3) for _ in range(3)]
    for one in everyone:
        ring.add(one)
    while line := ring.ready_consumers():
        line.popleft().open = False
    for one in everyone:
        ring.remove(one)
    assert (ring.members, ring.ready_consumers()) == ({}, None)


# -- reopening


def test_reopening_needs_credit_and_wakes_the_queue() -> None:
    house, session = House(), Session()
    queue = house.queue()
    held = add(queue, session, prefetch=1)
    publish(house, queue, 3)
    house.turn()
    assert session.numbers() == [1]
    held.reopen()
    assert (house.active, held.open) == ([], False)
    session.ack(held)
    assert (house.active, held.open) == ([queue], True)
    held.reopen()
    assert queue.ring is not None
    assert order(queue.ring) == [held]
    house.turn()
    assert session.numbers() == [2]


def test_a_consumer_that_left_is_not_reopened() -> None:
    house, session = House(), Session()
    queue = house.queue()
    left, stays = add(queue, session, "left", prefetch=1), add(queue, session, "stays", prefetch=1)
    publish(house, queue, 4)
    house.turn()
    queue.remove_consumer(left)
    session.ack(left)
    session.ack(stays)
    house.turn()
    assert (session.numbers(left), session.numbers(stays)) == ([], [3])
    queue.remove_consumer(stays)
    session.ack(stays)
    house.turn()
    assert (queue.ready_count, queue.consumer_count) == (1, 0)
