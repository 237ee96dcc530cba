"""Policies that change many queues in slices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.amqp import make_broker, take_turns
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.policy import updates
from warrenmq.core.policy.updates import CHECKS_PER_CHANGE

from .support import clear, policies, put

QUEUES = [f"q{number}" for number in range(6)]


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "SLICE_CHECKS", 2 * CHECKS_PER_CHANGE)


@pytest.fixture
def broker() -> Broker:
    return filled()


def filled() -> Broker:
    broker = make_broker(clock=ManualClock())
    for name in QUEUES:
        broker.vhosts["/"].declare_queue(name)
    return broker


def limits(broker: Broker) -> list[int | None]:
    """The limit of each queue that is there, in the order of their names."""
    found = sorted(broker.vhosts["/"].queues.values(), key=lambda queue: queue.name)
    return [None if queue.rules is None else queue.rules.max_length for queue in found]


def go_on(broker: Broker, slices: int = 20) -> None:
    for _ in range(slices):
        assert isinstance(broker.clock, ManualClock)
        broker.clock.advance(1)
        take_turns(broker)


def test_an_update_continues_in_later_turns(broker: Broker) -> None:
    asked: list[str] = []
    broker.on_work = lambda: asked.append("turn")
    put(broker, "p", "^q", max_length=5)
    assert 0 < limits(broker).count(5) < len(QUEUES)
    assert asked and broker.timers.next_ms == broker.now_ms + 1
    seen = []
    for _ in QUEUES:
        go_on(broker, 1)
        seen.append(limits(broker).count(5))
    assert seen == sorted(seen)
    assert seen[0] < seen[-1] == len(QUEUES)


def test_a_slice_ends_in_time_though_its_checks_are_few(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("SLICE_CHECKS", 10_000), ("SLICE_S", 0.0), ("SHORT_CHECKS", 2)):
        monkeypatch.setattr(updates, name, value)
    put(broker, "p", "^(?!x)", max_length=5)
    assert limits(broker).count(5) < len(QUEUES)
    go_on(broker)
    assert limits(broker) == [5] * len(QUEUES)


def test_when_done_runs_after_all_updates(broker: Broker) -> None:
    done: list[str] = []
    policies(broker).updates.when_done(lambda: done.append("before"))
    put(broker, "p", "^q", max_length=5)
    policies(broker).updates.when_done(lambda: done.append("after"))
    assert done == ["before"]
    go_on(broker)
    assert done == ["before", "after"]


def test_queues_declared_and_deleted_during_an_update(broker: Broker) -> None:
    put(broker, "p", "^q", max_length=5)
    vhost = broker.vhosts["/"]
    last = vhost.queues[QUEUES[-1]]
    vhost.delete_queue(last.name)
    vhost.declare_queue("q-new")
    assert vhost.queues["q-new"].rules is not None
    go_on(broker)
    assert limits(broker) == [5] * len(QUEUES)
    assert last.rules is None and policies(broker).of(last) is None


def test_deleting_the_vhost_stops_an_update(broker: Broker) -> None:
    done: list[str] = []
    put(broker, "p", "^q", max_length=5)
    policies(broker).updates.when_done(lambda: done.append("done"))
    before = limits(broker)
    policies(broker).clear_all()
    assert done == ["done"]
    go_on(broker)
    assert limits(broker) == before


CHANGES = st.tuples(
    st.sampled_from(["a", "b"]),
    st.booleans(),
    st.one_of(st.none(), st.tuples(st.sampled_from(["", "^q[0-3]", "[4-9]"]), st.integers(1, 9))),
    st.integers(0, 2),
)


@settings(max_examples=100)
@given(st.lists(CHANGES, max_size=6))
def test_overlapping_changes_have_the_effect_of_the_last(
    changes: list[tuple[str, bool, tuple[str, int] | None, int]],
) -> None:
    """The result is that of complete changes, one after the other."""
    broker = filled()
    for name, operator, policy, slices in changes:
        if policy is None:
            clear(broker, name, operator=operator)
        else:
            pattern, limit = policy
            put(broker, name, pattern, operator=operator, priority=limit, max_length=limit)
        go_on(broker, slices)
    go_on(broker)
    again = make_broker()
    for policy_record in policies(broker).records():
        policies(again).set(policy_record)
    for operator_record in policies(broker).operator_records():
        policies(again).set(operator_record)
    for name in QUEUES:
        again.vhosts["/"].declare_queue(name)
    assert limits(broker) == limits(again)
