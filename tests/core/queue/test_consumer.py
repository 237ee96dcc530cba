from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.held import held
from warrenmq.core.queue.consumer import Consumer, ConsumerRing

from .support import FakeContext, Session


def consumer(
    session: Session, prefetch: int = 0, priority: int = 0, no_ack: bool = False
) -> Consumer:
    queue = FakeContext().queue()
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
def test_credit_without_acks(unacked_count: int, credit: int) -> None:
    session = Session(prefetch=3, unacked_count=unacked_count)
    assert consumer(session, prefetch=1, no_ack=True).credit() == credit


@pytest.mark.parametrize("no_ack", [False, True])
def test_an_unwritable_session_has_no_credit(no_ack: bool) -> None:
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


def test_removal_does_not_search_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
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


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "remove", "close", "reopen"]), st.integers(0, 5)),
        max_size=60,
    )
)
@example([("add", 4), ("add", 1), ("remove", 1), ("add", 1)])
def test_the_ring_agrees_with_lists(steps: list[tuple[str, int]]) -> None:
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


def test_unused_priorities_leave_nothing() -> None:
    ring, session = ConsumerRing(), Session()
    before = len(held(ring))
    for priority in range(1_000):
        closed = consumer(session, priority=priority)
        ring.add(closed)
        if priority % 2:
            line = ring.ready_consumers()
            assert line is not None
            line.popleft().open = False
        ring.remove(closed)
    assert ring.ready_consumers() is None
    assert len(held(ring)) <= before
