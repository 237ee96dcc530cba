"""Purging and deleting very many messages, queues and connections in slices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.support.amqp import Client, make_broker, method, publish, take_turns
from tests.support.steps import STEPS_A_TURN, count_calls, count_steps
from warrenmq.core import slices
from warrenmq.core.proto.connection_state import ConnectionState
from warrenmq.core.store import paged_out_ranges
from warrenmq.core.store.segment_part import SegmentPart

COUNT = 2 * STEPS_A_TURN * max(slices.RELEASED_AT_ONCE, paged_out_ranges.DISCARDED_AT_ONCE)


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    """Queue `q` has so many messages, each of which came alone."""
    count_steps(monkeypatch)
    found = Life(tmp_path / "log")
    found.declare("q")
    for body in numbered(COUNT):
        found.client.publish(body, PERSISTENT, routing_key="q")
    found.write()
    yield found
    found.abandon()


def begin(life: Life, name: str) -> None:
    """Has the client ask; the rest is done in the turns that follow."""
    life.broker.tick()
    life.client.connection.receive(method(1, name, queue="q"))


def left(life: Life) -> int:
    """How many messages the store keeps."""
    return sum(segment.unsettled for segment in life.store.log.segments.values())


@pytest.mark.parametrize("is_paged_out", [False, True])
def test_a_purge_settles_in_slices(
    life: Life, monkeypatch: pytest.MonkeyPatch, *, is_paged_out: bool
) -> None:
    if is_paged_out:
        life.page_out()
    counted = count_calls(monkeypatch, (SegmentPart, "count_settled"))
    most = STEPS_A_TURN * (paged_out_ranges.DISCARDED_AT_ONCE if is_paged_out else 1)
    begin(life, "Queue.Purge")
    assert life.queue("q").ready_count == 0
    turns = 0
    while left(life):
        assert counted.total() <= most
        assert life.client.come() == [], "it is answered when it is kept"
        counted.clear()
        life.broker.turn()
        turns += 1
    assert turns >= COUNT // most - 1
    life.turns()
    (purged,) = life.client.come()
    assert purged["message_count"] == COUNT
    life.crash()
    assert life.bodies("q") == []


def test_second_purge_is_answered_after_the_first(life: Life) -> None:
    others = [life.connect(), life.connect()]
    begin(life, "Queue.Purge")
    others[0].connection.receive(method(1, "Queue.Purge", queue="q"))
    life.broker.tick()
    others[1].connection.receive(publish(1, b"new", PERSISTENT, routing_key="q"))
    others[1].connection.receive(method(1, "Queue.Purge", queue="q"))
    while left(life):
        for client in (life.client, *others):
            assert client.come() == []
        life.broker.turn()
    life.turns()
    answers = [client.come() for client in (life.client, *others)]
    assert [[one["message_count"] for one in found] for found in answers] == [[COUNT], [0], [1]]


@pytest.mark.parametrize("is_paged_out", [False, True])
def test_purge_keeps_messages_that_arrive_during_it(life: Life, *, is_paged_out: bool) -> None:
    tag = life.get("q", ack=False)
    assert tag is not None
    if is_paged_out:
        life.page_out()
        queue = life.classic("q")
        queue.page_in_requests.read(next(iter(queue.backlog)))  # type: ignore[arg-type]
    begin(life, "Queue.Purge")
    life.client.connection.receive(
        method(1, "Basic.Reject", delivery_tag=tag["delivery_tag"], requeue=True)
    )
    life.publish(b"new", "q")
    assert life.queue("q").ready_count == 2
    life.write()
    while left(life) > 2:
        life.turns()
    assert life.bodies("q") == [*numbered(1), b"new"]


@pytest.mark.parametrize("is_paged_out", [False, True])
def test_a_crash_in_the_middle_of_a_purge_brings_back_the_newest(
    life: Life, *, is_paged_out: bool
) -> None:
    if is_paged_out:
        life.page_out()
    begin(life, "Queue.Purge")
    life.store.flush()
    assert 0 < left(life) < COUNT
    kept = left(life)
    life.crash()
    assert life.bodies("q") == numbered(COUNT)[-kept:]


@pytest.mark.parametrize("first", ["Queue.Delete", "Queue.Purge"])
def test_a_deletion_frees_its_messages_in_slices(life: Life, first: str) -> None:
    tag = life.get("q", ack=False)
    assert tag is not None
    (part,) = (part for held in life.store.log.segments.values() for part in held.parts.values())
    entries = part.entries
    begin(life, first)
    if first != "Queue.Delete":
        begin(life, "Queue.Delete")
    assert left(life) == 0
    assert "q" not in life.broker.vhosts["/"].queues
    before = life.broker.memory.resident_bytes
    most, turns = STEPS_A_TURN * slices.RELEASED_AT_ONCE, 0
    known = len(entries)
    life.client.connection.receive(method(1, "Basic.Ack", delivery_tag=tag["delivery_tag"]))
    while life.broker.slices.busy:
        life.broker.turn()
        assert known - len(entries) <= most
        known = len(entries)
        turns += 1
    assert turns >= COUNT // most
    assert not entries
    assert life.broker.memory.resident_bytes < before // 100
    life.store.flush()
    life.crash()
    assert "q" not in life.broker.vhosts["/"].queues


@pytest.mark.parametrize("is_auto_delete", [False, True])
@pytest.mark.parametrize("how", ["Connection.Close", "lost"])
def test_queues_of_a_connection_are_deleted_in_slices(
    monkeypatch: pytest.MonkeyPatch, how: str, *, is_auto_delete: bool
) -> None:
    count_steps(monkeypatch)
    broker = make_broker()
    client, other = Client(broker), Client(broker)
    names = [f"q{number}" for number in range(2 * STEPS_A_TURN)]
    for name in names:
        client.declare(name, exclusive=not is_auto_delete, auto_delete=is_auto_delete)
        if is_auto_delete:
            client.consume(name, name)
    dropped: list[str] = []
    broker.on_deleted = lambda _vhost, _kind, name: dropped.append(name)
    broker.tick()
    if how == "lost":
        client.connection.lost()
    else:
        client.connection.receive(method(0, how, reply_code=200))
    assert len(dropped) <= STEPS_A_TURN
    if not is_auto_delete:
        assert other.send("Queue.Declare", queue=names[-1], passive=True)[0]["reply_code"] == 404
        other = Client(broker)
        other.declare(names[-2], exclusive=True)
    take_turns(broker)
    assert sorted(dropped) == sorted(names)
    assert list(broker.vhosts["/"].queues) == ([] if is_auto_delete else [names[-2]])


def test_the_connections_of_a_user_end_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    count_steps(monkeypatch)
    broker = make_broker()
    broker.users.add("admin", "secret", ("administrator",))
    clients = [Client(broker) for _ in range(2 * STEPS_A_TURN)]
    clients[0].declare("q")
    connections = [client.connection for client in clients]
    broker.tick()
    broker.users.remove("guest")
    assert sum(one.state is ConnectionState.CLOSING for one in connections) <= STEPS_A_TURN
    connections[-1].receive(publish(1, b"late", routing_key="q"))
    take_turns(broker)
    assert broker.vhosts["/"].queues["q"].ready_count == 0
    for client in clients:
        (closed,) = client.come()
        assert (closed.name, closed["reply_code"]) == ("Connection.Close", 320)
        assert closed["reply_text"] == "CONNECTION_FORCED - user 'guest' is deleted"
