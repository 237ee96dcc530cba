"""Inner queues are created, restored and deleted with their exchange."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.amqp import Client
from warrenmq.core.auth import Users
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.definitions.keys import DefinitionKind
from warrenmq.core.definitions.kinds import ExchangeDefinition, QueueDefinition
from warrenmq.core.queue.names import inner_name
from warrenmq.core.queue.queue import Queue

from .support import NotingStore, made, new_broker, restarted

DELAYED: dict[str, Any] = {
    "exchange": "x", "exchange_type": "x-delayed-message",
    "arguments": {"x-delayed-type": "direct"},
}  # fmt: skip


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


@pytest.mark.parametrize("durable", [False, True])
def test_the_inner_queue_is_as_durable_as_its_exchange(
    started: tuple[Broker, NotingStore], durable: bool
) -> None:
    broker, store = started
    before = dict(store.definitions)
    queue = declare(broker, durable=durable)
    assert queue.durable is durable
    new = [DefinitionKind(key[0]) for key in store.definitions if key not in before]
    assert new == ([DefinitionKind.EXCHANGE, DefinitionKind.QUEUE] if durable else [])
    again = restarted(store)[0]
    assert bool(again.vhosts["/"].inner_queues) is durable
    if durable:
        assert (inner(again).id, type(inner(again))) == (queue.id, type(queue))


def test_the_inner_queue_is_deleted_with_its_exchange(started: tuple[Broker, NotingStore]) -> None:
    """A crash after any of its writes leaves a state that can be restored."""
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


def test_an_exchange_without_its_queue_gets_a_new_one() -> None:
    store = made(
        ExchangeDefinition("/", "x", "x-delayed-message", False, False, DELAYED["arguments"])
    )
    broker = Broker(Users(), store=store, clock=ManualClock())
    assert broker.restore()
    assert inner(broker).durable
    assert inner(restarted(store)[0]).id == inner(broker).id


def test_an_inner_queue_of_an_unknown_kind_is_set_aside() -> None:
    broker, _ = restarted(made(QueueDefinition("/", inner_name("later", "x"), 5, False, {})))
    assert "unknown inner queue type 'later'" in next(iter(broker.set_aside.values()))
