"""Turns: budgets, fairness, and waiting for a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.amqp import (
    Client,
    Reply,
    bodies,
    make_broker,
    method,
    publish,
    take_turns,
)
from tests.support.manual_store import ManualStore
from warrenmq.core.turn import DISPATCH_MESSAGES, TURN_MESSAGES

PERSISTENT = {"delivery_mode": 2}


def row(count: int, properties: Mapping[str, object] | None = None, key: str = "q") -> bytes:
    return b"".join(
        publish(1, b"%016d" % number, properties, routing_key=key) for number in range(count)
    )


def confirms(replies: list[Reply]) -> list[tuple[str, int, bool]]:
    return [
        (reply.name, reply["delivery_tag"], reply["multiple"])
        for reply in replies
        if reply.name in ("Basic.Ack", "Basic.Nack")
    ]


# -- turns


def test_a_turn_has_a_budget() -> None:
    client = Client(make_broker())
    client.declare("q")
    for _ in range(3):
        client.feed(row(DISPATCH_MESSAGES))
    client.connection.receive(method(1, "Basic.Consume", queue="q", no_ack=True))
    assert client.broker.turn(), "there is more to do"
    delivered = client.broker.statistics.total.deliver_get
    assert 0 < delivered <= TURN_MESSAGES
    assert delivered < 3 * DISPATCH_MESSAGES
    take_turns(client.broker)
    assert client.broker.statistics.total.deliver_get == 3 * DISPATCH_MESSAGES


def test_a_long_queue_does_not_hold_up_a_short_one() -> None:
    client = Client(make_broker())
    other = Client(client.broker)
    client.declare("q")
    for _ in range(5):
        client.feed(row(4 * DISPATCH_MESSAGES))
    other.declare("short")
    other.consume("short", no_ack=True)
    client.connection.receive(
        method(1, "Basic.Consume", queue="q", no_ack=True) + publish(1, b"x", routing_key="short")
    )
    client.broker.turn()
    assert other.bodies() == [b"x"]
    assert client.messages("q") > 0


def test_dispatch_now_dispatches_one_queue() -> None:
    client = Client(make_broker())
    for queue in ("asked", "other"):
        client.declare(queue)
        client.consume(queue, queue, no_ack=True)
    client.connection.receive(publish(1, b"x", routing_key="asked"))
    client.connection.receive(publish(1, b"x", routing_key="other"))
    client.broker.dispatch_now(client.broker.vhosts["/"].queues["asked"])
    assert client.messages("asked") == 0
    assert client.messages("other") == 1
    client.broker.turn()
    assert client.messages("other") == 0


# -- confirms wait for the store


@pytest.fixture
def store() -> ManualStore:
    store = ManualStore()
    store.paging = False
    return store


@pytest.fixture
def publisher(store: ManualStore) -> Client:
    client = Client(make_broker(store))
    client.declare("q", durable=True)
    client.declare("transient")
    client.call("Confirm.Select")
    return client


def commit(client: Client, store: ManualStore) -> list[Reply]:
    store.commit()
    take_turns(client.broker)
    return client.come()


@pytest.mark.parametrize(
    ("properties", "key"),
    [(None, "q"), (PERSISTENT, "transient"), ({"delivery_mode": 1}, "q"), (PERSISTENT, "nobody")],
)
def test_messages_that_are_not_stored_are_confirmed_at_once(
    publisher: Client, properties: dict[str, Any] | None, key: str
) -> None:
    replies = publisher.feed(row(30, properties, key))
    assert confirms(replies) == [("Basic.Ack", 30, True)]


def test_confirms_are_in_publish_order(publisher: Client, store: ManualStore) -> None:
    assert confirms(publisher.feed(row(2) + row(3, PERSISTENT) + row(4))) == [
        ("Basic.Ack", 2, True)
    ]
    assert publisher.feed(row(1)) == []
    assert confirms(commit(publisher, store)) == [("Basic.Ack", 10, True)]


def test_callbacks_run_at_their_commits(store: ManualStore) -> None:
    broker = make_broker(store)
    told: list[str] = []
    late = store.barrier() + 2
    broker.commits.when_decided(late, lambda: told.append("late"))
    broker.commits.when_decided(late - 1, lambda: told.append(str(1 // 0)))
    broker.commits.when_decided(late - 1, lambda: told.append("early"))
    store.barrier()
    store.commit()
    assert told == ["early"]
    broker.commits.when_decided(late - 1, lambda: told.append("at once"))
    store.barrier()
    store.commit()
    store.commit()
    assert told == ["early", "at once", "late"]


# -- messages that are not resident


def arrive(client: Client, store: ManualStore) -> list[Reply]:
    """All reads come in, and those that follow from them."""
    while store.arrive():
        take_turns(client.broker)
    return client.come()


@pytest.fixture
def paged(store: ManualStore) -> Client:
    """A connection without confirms; 40 persistent messages are in `q`, none in memory."""
    store.paging = True
    client = Client(make_broker(store))
    client.declare("q", durable=True)
    client.feed(row(30, PERSISTENT))
    client.feed(row(10, PERSISTENT))
    return client


EXPECTED = [b"%016d" % number for number in (*range(30), *range(10))]


def test_prefetch_limits_paged_in_messages(paged: Client, store: ManualStore) -> None:
    paged.send("Basic.Qos", prefetch_count=31)
    paged.consume("q")
    assert bodies(arrive(paged, store)) == EXPECTED[:31]
    # The rest of the second batch is in memory by now.
    assert bodies(paged.send("Basic.Ack", delivery_tag=31, multiple=True)) == EXPECTED[31:]


def test_consumer_cancelled_during_a_read_gets_nothing(paged: Client, store: ManualStore) -> None:
    paged.consume("q")
    paged.call("Basic.Cancel", consumer_tag="c")
    assert arrive(paged, store) == []
    assert paged.messages("q") == 40
    assert bodies(paged.consume("q") + arrive(paged, store)) == EXPECTED


def test_a_turn_is_idle_during_a_read(paged: Client, store: ManualStore) -> None:
    paged.connection.receive(method(1, "Basic.Consume", queue="q"))
    paged.broker.turn()
    assert not paged.broker.turn()
