"""The header `x-offset` of messages of a persistent exchange, by every way of publishing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.support.amqp import Client, Reply, method, publish
from warrenmq.core.local.publisher import LocalPublisher
from warrenmq.core.message.model import Properties


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path / "log")
    declare(life, "x")
    life.declare("q")
    life.client.call("Queue.Bind", queue="q", exchange="x")
    yield life
    life.abandon()


def declare(life: Life, name: str, kind: str = "fanout") -> None:
    life.client.call(
        "Exchange.Declare", exchange=name, exchange_type=kind, durable=True,
        arguments={"x-persist-messages": 100},
    )  # fmt: skip


def taken(life: Life, queue: str = "q") -> list[Reply]:
    found = []
    while (reply := life.get(queue)) is not None:
        found.append(reply)
    return found


def offsets(life: Life, queue: str = "q") -> list[Any]:
    return [reply.headers.get("x-offset") for reply in taken(life, queue)]


def replayed(life: Life) -> list[tuple[int, bytes]]:
    """Returns offsets and bodies that a new binding gets of the stored messages."""
    life.declare("again")
    life.client.call("Queue.Bind", queue="again", exchange="x", arguments={"x-from": 0})
    return [(reply.headers["x-offset"], reply.body) for reply in taken(life, "again")]


def test_commit_assigns_the_offsets(life: Life) -> None:
    """The offset is that of the commit; what is rolled back has none."""
    other = life.connect()
    life.client.call("Tx.Select")
    for number in range(3):
        life.client.publish(b"in %d" % number, PERSISTENT, exchange="x")
        other.publish(b"out %d" % number, PERSISTENT, exchange="x")
    life.client.send("Tx.Commit")
    life.turns()
    life.client.come()
    life.client.publish(b"never", PERSISTENT, exchange="x")
    life.client.call("Tx.Rollback")
    other.publish(b"last", PERSISTENT, exchange="x")
    life.client = other
    assert offsets(life) == [0, 1, 2, 3, 4, 5, 6]
    bodies = [body for _, body in replayed(life)]
    assert bodies == [b"out 0", b"out 1", b"out 2", b"in 0", b"in 1", b"in 2", b"last"]


def test_binding_made_before_the_commit_gets_its_messages(life: Life) -> None:
    publisher = life.connect()
    publisher.call("Tx.Select")
    publisher.publish(b"held", PERSISTENT, exchange="x")
    assert replayed(life) == []
    publisher.send("Tx.Commit")
    life.turns()
    assert offsets(life, "again") == [0]


def test_offsets_are_added_by_every_way_of_publishing(life: Life) -> None:
    life.client.call("Exchange.Bind", source="amq.fanout", destination="x")
    bodies = numbered(7)
    for exchange, part in (("x", bodies[:3]), ("amq.fanout", bodies[3:5])):
        life.client.feed(b"".join(publish(1, body, PERSISTENT, exchange=exchange) for body in part))
    publisher = LocalPublisher(life.broker, life.broker.vhosts["/"], None)
    publisher.publish("x", "", Properties(delivery_mode=2), bodies[5])
    publisher.add("x", "", Properties(delivery_mode=2), bodies[6:])
    publisher.flush()
    life.turns()
    assert offsets(life) == list(range(7))
    assert replayed(life) == list(enumerate(bodies))


def test_dead_letters_get_their_own_offset(life: Life) -> None:
    life.declare("dying", arguments={"x-max-length": 1, "x-dead-letter-exchange": "x"})
    life.client.feed(
        b"".join(publish(1, body, PERSISTENT, routing_key="dying") for body in numbered(4))
    )
    life.turns()
    assert offsets(life) == [0, 1, 2]
    assert replayed(life) == list(enumerate(numbered(3)))


def test_a_message_in_several_logs_has_no_offset(life: Life) -> None:
    declare(life, "y")
    life.client.publish(b"one", PERSISTENT, exchange="y")
    for name in ("x", "y"):
        life.client.call("Exchange.Bind", source="amq.fanout", destination=name)
    life.client.publish(b"two", PERSISTENT, exchange="amq.fanout")
    assert offsets(life) == [None]
    assert replayed(life) == [(0, b"two")]


def test_a_publishers_own_offset_is_replaced(life: Life) -> None:
    headers = {"x-offset": "mine", "k": 1}
    life.client.publish(b"one", {**PERSISTENT, "headers": headers}, exchange="x")
    (reply,) = taken(life)
    assert reply.headers == {"x-offset": 0, "k": 1}


@pytest.mark.parametrize("transaction", [False, True])
def test_an_immediate_message_is_stored_when_it_is_delivered(life: Life, transaction: bool) -> None:
    """It comes back as it was published, without an offset."""
    publisher, reader = life.connect(), life.connect()
    if transaction:
        publisher.call("Tx.Select")

    def headers_of(name: str, client: Client) -> list[dict[str, Any]]:
        publisher.publish(b"x", PERSISTENT, exchange="x", immediate=True)
        replies = publisher.replies
        if transaction:
            replies = publisher.send("Tx.Commit")
        if client is reader:
            replies = reader.come()
        return [reply.headers for reply in replies if reply.name == name]

    assert headers_of("Basic.Return", publisher) == [{}]
    reader.consume("q", no_ack=True)
    assert headers_of("Basic.Deliver", reader) == [{"x-offset": 0}]
    assert replayed(life) == [(0, b"x")]


def test_binding_made_while_a_commit_makes_dead_letters_gets_all_messages(life: Life) -> None:
    for queue, arguments in (("dying", {"x-dead-letter-exchange": "x"}), ("late", {})):
        life.declare(queue, arguments=arguments)
    life.publish_together(numbered(300), "dying")
    life.write()
    consumer = life.connect()
    consumer.call("Tx.Select")
    consumer.consume("dying")
    consumer.connection.receive(method(1, "Basic.Nack", multiple=True) + method(1, "Tx.Commit"))
    life.broker.turn()
    assert life.client.messages("q") == 0, "they are not all made yet"
    life.client.call("Queue.Bind", queue="late", exchange="x", arguments={"x-from": 0})
    life.turns()
    assert offsets(life, "late") == offsets(life) == list(range(300))


@pytest.mark.parametrize("deleted", ["queue", "exchange"])
def test_queue_or_exchange_recreated_before_the_commit(life: Life, deleted: str) -> None:
    """What is left stays, and a binding that has replayed the messages before gets the next."""
    life.declare("gone")
    life.client.call("Queue.Bind", queue="gone", exchange="x")
    publisher = life.connect()
    publisher.call("Tx.Select")
    for body in numbered(2):
        publisher.publish(body, PERSISTENT, exchange="x")
    if deleted == "queue":
        life.client.call("Queue.Delete", queue="gone")
        life.declare("gone")
    else:
        life.client.call("Exchange.Delete", exchange="x")
        declare(life, "x")
        life.client.call("Queue.Bind", queue="q", exchange="x")
    assert replayed(life) == []
    publisher.send("Tx.Commit")
    life.turns()
    assert offsets(life) == offsets(life, "again") == [0, 1]
    assert life.get("gone") is None


def test_a_message_that_a_queue_refuses_is_stored(life: Life) -> None:
    life.declare("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    life.client.call("Queue.Bind", queue="full", exchange="x")
    life.confirm()
    names = [
        reply.name
        for body in numbered(2)
        for reply in life.client.publish(body, PERSISTENT, exchange="x") + life.client.come()
    ]
    life.turns()
    names += [reply.name for reply in life.client.come()]
    assert names == ["Basic.Ack", "Basic.Nack"]
    assert offsets(life) == [0, 1]
    assert replayed(life) == list(enumerate(numbered(2)))
