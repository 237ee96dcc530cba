"""Declaring and deleting objects with very many bindings in slices, as one operation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.life import Life
from tests.support.amqp import Client, method, names, publish
from tests.support.steps import STEPS_A_TURN, count_steps
from warrenmq.core.queue.queue import Queue
from warrenmq.core.route.exchange import Exchange
from warrenmq.core.vhost import VirtualHost

COUNT = 3 * STEPS_A_TURN
QUEUES = 10


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    """A durable exchange `x`, to which `front` is bound, with so many bindings to few queues."""
    found = Life(tmp_path / "log")
    for name in ("x", "front"):
        declare(found.client, name)
    found.client.call("Exchange.Bind", source="front", destination="x", routing_key="k")
    vhost = found.broker.vhosts["/"]
    for number in range(QUEUES):
        found.declare(f"q{number}")
    for number in range(COUNT):
        queue = found.queue(f"q{number % QUEUES}")
        vhost.bindings.add(vhost.exchange("x"), queue, f"k{number}", {})
    vhost.bindings.add(vhost.exchange("x"), found.queue(f"q{QUEUES - 1}"), "k", {})
    count_steps(monkeypatch)
    yield found
    found.abandon()


def declare(client: Client, name: str) -> None:
    replies = client.send("Exchange.Declare", exchange=name, exchange_type="direct", durable=True)
    assert names(replies) == ["Exchange.DeclareOk"]


def begin(client: Client, name: str, **fields: Any) -> None:
    """Asks, and has what goes beyond the first steps wait for the turns that follow."""
    client.broker.tick()
    if name.startswith("Exchange."):
        fields["exchange"] = "x"
    client.connection.receive(method(1, name, **fields))
    client.connection.output.flush()


def go_on(client: Client) -> list[str]:
    """What was held back is taken, as the server does when it is told that it may."""
    client.receive(b"")
    return names(client.come())


def kept(life: Life) -> int:
    return len(life.store.definitions)


def test_delete_ok_follows_the_last_binding(life: Life) -> None:
    before = kept(life)
    begin(life.client, "Exchange.Delete")
    # It is not read before the first one is answered.
    life.client.connection.receive(publish(1, b"late", exchange="x"))
    turns, known = 0, kept(life)
    while life.broker.slices.busy:
        assert life.client.come() == []
        life.broker.turn()
        assert known - kept(life) <= STEPS_A_TURN
        known = kept(life)
        turns += 1
    assert turns >= COUNT // STEPS_A_TURN - 2
    assert kept(life) == before - COUNT - 3  # its bindings, that of `front`, and itself
    assert go_on(life.client) == ["Exchange.DeleteOk", "Channel.Close"]
    assert all(not life.queue(f"q{number}").bound for number in range(QUEUES))


@pytest.mark.parametrize("passive", [False, True])
def test_a_declaration_waits_for_the_deletion(life: Life, *, passive: bool) -> None:
    other = life.connect()
    begin(life.client, "Exchange.Delete")
    begin(other, "Exchange.Declare", exchange_type="fanout", durable=True, passive=passive)
    assert other.come() == []
    life.turns()
    assert other.transport.times_unblocked == life.client.transport.times_unblocked == 1
    assert go_on(other) == ["Channel.Close" if passive else "Exchange.DeclareOk"]
    assert go_on(life.client) == ["Exchange.DeleteOk"]
    life.write()
    life.crash()
    found = life.broker.vhosts["/"].exchanges.get("x")
    assert found is None if passive else found is not None and not found.binding_count


def test_a_virtual_host_is_deleted_meanwhile(life: Life) -> None:
    life.broker.users.add("admin", "secret", ("administrator",))
    begin(life.client, "Exchange.Delete")
    vhost = life.broker.vhosts.pop("/")
    life.broker.ending["/"] = vhost
    for _ in vhost.deletion.delete_all():
        life.broker.turn()
    assert not vhost.busy_names and not vhost.exchanges
    bindings = [key for key in life.store.definitions if b"front" in key or b"q0" in key]
    assert bindings == []


def bind_all(vhost: VirtualHost, made: Exchange | Queue) -> Iterator[None]:
    """Somebody who keeps all bindings of `x`."""
    if isinstance(made, Exchange) and made.name == "x":
        for number in range(COUNT):
            vhost.bindings.add(made, vhost.queue(f"q{number % QUEUES}"), f"k{number}", {})
            yield


def test_a_declared_exchange_is_found_with_its_bindings(life: Life) -> None:
    other = life.connect()
    life.client.send("Exchange.Delete", exchange="x")
    vhost = life.broker.vhosts["/"]
    life.broker.on_declared = lambda _, made: bind_all(vhost, made)
    fields: dict[str, Any] = {"exchange_type": "direct", "durable": True}
    begin(life.client, "Exchange.Declare", **fields)
    life.client.connection.receive(publish(1, b"first", exchange="x", routing_key=f"k{COUNT - 1}"))
    begin(other, "Exchange.Declare", **fields)
    turns = 0
    while life.broker.slices.busy:
        assert "x" not in life.broker.vhosts["/"].exchanges
        assert life.client.come() == other.come() == []
        life.broker.turn()
        turns += 1
    assert turns >= COUNT // STEPS_A_TURN - 1
    assert go_on(life.client) == go_on(other) == ["Exchange.DeclareOk"]
    assert life.queue(f"q{(COUNT - 1) % QUEUES}").ready_count == 1
    life.write()
    life.crash()
    assert life.broker.vhosts["/"].exchange("x").binding_count == COUNT


@pytest.fixture
def bound(life: Life) -> Life:
    """Queue `q` has as many bindings, from `x` and from an exchange that goes with the last one."""
    vhost = life.broker.vhosts["/"]
    fields: dict[str, Any] = {"exchange_type": "fanout", "durable": True, "auto_delete": True}
    life.client.call("Exchange.Declare", exchange="auto", **fields)
    life.declare("q")
    for number in range(COUNT):
        vhost.bindings.add(vhost.exchange("x"), life.queue("q"), f"own{number}", {})
    vhost.bindings.add(vhost.exchange("auto"), life.queue("q"), "", {})
    life.client.publish(b"ready", routing_key="q")
    return life


def test_a_queue_ends_at_once_and_its_bindings_in_slices(bound: Life) -> None:
    life, vhost, last = bound, bound.broker.vhosts["/"], f"own{COUNT - 1}"
    before = kept(life)
    route = vhost.route(vhost.exchange("x"), (last,), None, watched=True)
    begin(life.client, "Queue.Delete", queue="q")
    assert "q" not in vhost.queues
    assert route.dead
    assert not vhost.route(vhost.exchange("x"), (last,), None, watched=False).queues
    turns, known = 0, kept(life)
    while life.broker.slices.busy:
        assert life.client.come() == []
        life.broker.turn()
        assert known - kept(life) <= STEPS_A_TURN
        known = kept(life)
        turns += 1
    assert turns >= COUNT // STEPS_A_TURN - 2
    assert kept(life) == before - COUNT - 3  # its bindings, that of `auto`, `auto` and itself
    life.client.receive(b"")
    (answer,) = life.client.come()
    assert (answer.name, answer["message_count"]) == ("Queue.DeleteOk", 1)


def test_crash_during_a_deletion_leaves_the_queue_and_remaining_bindings(bound: Life) -> None:
    life = bound
    begin(life.client, "Queue.Delete", queue="q")
    life.store.flush()
    life.crash()
    queue, source = life.queue("q"), life.broker.vhosts["/"].exchange("x")
    assert 0 < len(list(source.bindings_to(queue))) < COUNT
    assert not len(life.broker.set_aside)
    assert life.client.call("Queue.Delete", queue="q").name == "Queue.DeleteOk"


def test_two_deletions_that_meet_end_each_binding_once(bound: Life) -> None:
    life, other = bound, bound.connect()
    begin(life.client, "Exchange.Delete")
    begin(other, "Queue.Delete", queue="q")
    life.turns()
    assert go_on(life.client) == ["Exchange.DeleteOk"]
    assert go_on(other) == ["Queue.DeleteOk"]
    assert not any(b"own" in key for key in life.store.definitions)


def test_consumers_are_cancelled_in_slices(life: Life) -> None:
    client = life.connect()
    for number in range(COUNT):
        client.connection.receive(
            method(1, "Basic.Consume", queue="q0", consumer_tag=f"c{number}", nowait=True)
        )
    begin(life.client, "Queue.Delete", queue="q0")
    client.connection.output.flush()
    last = f"c{COUNT - 1}"
    client.connection.receive(method(1, "Basic.Cancel", consumer_tag=last, nowait=True))
    client.connection.receive(
        method(1, "Basic.Consume", queue="q1", consumer_tag=last, nowait=True)
    )
    told: list[str] = []
    while life.broker.slices.busy:
        some = [reply["consumer_tag"] for reply in client.come()]
        assert len(some) <= STEPS_A_TURN
        told += some
        assert life.client.come() == []
        life.broker.turn()
    told += [reply["consumer_tag"] for reply in client.come()]
    assert told == [f"c{number}" for number in range(COUNT - 1)]
    assert go_on(life.client) == ["Queue.DeleteOk"]
    life.client.publish(b"more", routing_key="q1")
    assert [reply["consumer_tag"] for reply in client.come()] == [last]
