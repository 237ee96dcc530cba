"""Inner queues: where exchanges keep messages comes, lasts and goes with the exchange."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.life import Life
from tests.support.amqp import Client
from warrenmq.core.auth import Users
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.definitions.facts import DeliveryCounts
from warrenmq.core.definitions.keys import Kind
from warrenmq.core.definitions.kinds import ExchangeDefinition, QueueDefinition
from warrenmq.core.queue.queue import Queue
from warrenmq.core.queue.registry import INNER_MARK, inner_name

from .support import NotingStore, made, new_broker, restarted

DELAYED: dict[str, Any] = {
    "exchange": "x", "exchange_type": "x-delayed-message",
    "arguments": {"x-delayed-type": "direct"},
}  # fmt: skip
NAME = inner_name("delay", "x")


@pytest.fixture
def started() -> tuple[Broker, NotingStore]:
    return new_broker()


def declare(broker: Broker, *, durable: bool = True) -> Queue:
    """An exchange with an inner queue, which is given."""
    client = Client(broker)
    client.call("Exchange.Declare", durable=durable, **DELAYED)
    return inner(broker)


def inner(broker: Broker) -> Queue:
    """The only inner queue, which must be its exchange's."""
    vhost = broker.vhosts["/"]
    (queue,) = vhost.inner_queues.values()
    assert vhost.exchanges["x"].inner is queue
    return queue


def kept(store: NotingStore) -> list[Kind]:
    return [Kind(key[0]) for key in store.definitions]


def test_nobody_can_name_it(started: tuple[Broker, NotingStore]) -> None:
    broker, _ = started
    queue = declare(broker)
    client = Client(broker)
    assert queue.name == NAME
    assert NAME not in broker.vhosts["/"].queues
    for method, code in (("Queue.Declare", 406), ("Basic.Consume", 404), ("Queue.Purge", 404)):
        fresh = Client(broker)
        assert fresh.call(method, queue=NAME)["reply_code"] == code
    assert client.call("Queue.Delete", queue=NAME)["message_count"] == 0
    client.publish(b"x", routing_key=NAME)
    assert (inner(broker), queue.ready_count) == (queue, 0)


@pytest.mark.parametrize("durable", [False, True])
def test_it_lasts_as_long_as_its_exchange(
    started: tuple[Broker, NotingStore], durable: bool
) -> None:
    broker, store = started
    before = dict(store.definitions)
    queue = declare(broker, durable=durable)
    assert queue.durable is durable
    new = [Kind(key[0]) for key in store.definitions if key not in before]
    assert new == ([Kind.EXCHANGE, Kind.QUEUE] if durable else [])
    again = restarted(store)[0]
    assert bool(again.vhosts["/"].inner_queues) is durable
    if durable:
        assert (inner(again).id, type(inner(again))) == (queue.id, type(queue))


def test_declared_again_it_is_the_same(started: tuple[Broker, NotingStore]) -> None:
    broker, store = started
    queue = declare(broker)
    written = len(store.writes)
    assert declare(broker) is queue
    assert len(store.writes) == written


def test_it_goes_with_its_exchange(started: tuple[Broker, NotingStore]) -> None:
    """After each write of it there is a state that can be started from."""
    broker, store = started
    first = dict(store.definitions)
    queue = declare(broker)
    states = [dict(store.definitions)]
    written = len(store.writes)
    Client(broker).call("Exchange.Delete", exchange="x")
    assert queue.deleted
    assert broker.vhosts["/"].inner_queues == {}
    assert store.definitions == first
    for key, value in store.writes[written:]:
        assert value is None
        states.append({**states[-1]})
        del states[-1][key]
    for state in states[:-1]:
        again = Broker(Users(), store=NotingStore(state), clock=ManualClock())
        again.restore()
        assert inner(again).durable
    assert states[-1] == first


def test_auto_delete_takes_it_along(started: tuple[Broker, NotingStore]) -> None:
    broker, store = started
    first = dict(store.definitions)
    client = Client(broker)
    client.call("Exchange.Declare", durable=True, auto_delete=True, **DELAYED)
    client.declare("q")
    client.call("Queue.Bind", queue="q", exchange="x", routing_key="k")
    client.call("Queue.Unbind", queue="q", exchange="x", routing_key="k")
    assert broker.vhosts["/"].inner_queues == {}
    assert store.definitions == first


def test_an_exchange_without_its_queue_gets_a_new_one() -> None:
    store = made(
        ExchangeDefinition("/", "x", "x-delayed-message", False, False, DELAYED["arguments"])
    )
    broker = Broker(Users(), store=store, clock=ManualClock())
    assert broker.restore()
    assert inner(broker).durable
    assert inner(restarted(store)[0]).id == inner(broker).id


def test_a_type_from_a_later_warren_is_named() -> None:
    broker, _ = restarted(made(QueueDefinition("/", inner_name("later", "x"), 5, False, {})))
    assert "no inner queue type 'later'" in next(iter(broker.set_aside.values()))


def test_facts_of_it_have_an_owner(started: tuple[Broker, NotingStore]) -> None:
    broker, store = started
    queue = declare(broker)
    DeliveryCounts(broker.facts, queue.id).keep(5, 1)
    again = restarted(store)[0]
    assert DeliveryCounts(again.facts, queue.id).load() == {5: 1}
    again.vhosts["/"].delete_exchange("x")
    assert DeliveryCounts(again.facts, queue.id).load() == {}


# -- on a directory


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log")
    yield found
    found.abandon()


@pytest.mark.parametrize("again", [Life.restart, Life.crash])
def test_its_messages_come_back_to_it(life: Life, again: Any) -> None:
    queue = declare(life.broker)
    headers = {"headers": {"x-delay": 60_000}}
    life.publish(b"later", "k", {"delivery_mode": 2, **headers}, exchange="x")
    life.write()
    assert queue.ready_count == 1
    again(life)
    life.turns(3)
    assert (inner(life.broker).id, inner(life.broker).ready_count) == (queue.id, 1)
    life.client.call("Exchange.Delete", exchange="x")
    life.write()
    again(life)
    assert life.broker.vhosts["/"].inner_queues == {}
    assert INNER_MARK not in "".join(life.broker.vhosts["/"].queues)
