"""Copies of what a persistent exchange keeps carry their place, however they came to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.support.amqp import Client, Reply, publish
from warrenmq.core.auth import User
from warrenmq.core.message.model import Properties
from warrenmq.core.publish.local import LocalPublish


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
    """What a new binding gets of all that was kept."""
    life.declare("again")
    life.client.call("Queue.Bind", queue="again", exchange="x", arguments={"x-from": 0})
    return [(reply.headers["x-offset"], reply.body) for reply in taken(life, "again")]


def test_published(life: Life) -> None:
    life.client.feed(b"".join(publish(1, body, PERSISTENT, exchange="x") for body in numbered(5)))
    assert offsets(life) == [0, 1, 2, 3, 4]
    assert replayed(life) == list(enumerate(numbered(5)))


def test_in_a_transaction(life: Life) -> None:
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


def test_a_binding_made_before_the_commit_gets_what_is_committed(life: Life) -> None:
    """It has all that was kept before, so it must not miss the next offset."""
    publisher = life.connect()
    publisher.call("Tx.Select")
    publisher.publish(b"held", PERSISTENT, exchange="x")
    assert replayed(life) == []
    publisher.send("Tx.Commit")
    life.turns()
    assert offsets(life, "again") == [0]


def test_through_another_exchange(life: Life) -> None:
    life.client.call("Exchange.Bind", source="amq.fanout", destination="x")
    life.client.publish(b"direct", PERSISTENT, exchange="x")
    life.client.feed(
        b"".join(publish(1, body, PERSISTENT, exchange="amq.fanout") for body in numbered(3))
    )
    assert offsets(life) == [0, 1, 2, 3]
    assert [body for _, body in replayed(life)] == [b"direct", *numbered(3)]


def test_dead_letters(life: Life) -> None:
    life.declare("dying", arguments={"x-max-length": 1, "x-dead-letter-exchange": "x"})
    life.client.feed(
        b"".join(publish(1, body, PERSISTENT, routing_key="dying") for body in numbered(4))
    )
    life.turns()
    assert [(reply.headers["x-offset"], reply.body) for reply in taken(life)] == [
        (0, b"000000"), (1, b"000001"), (2, b"000002"),
    ]  # fmt: skip
    assert replayed(life) == list(enumerate(numbered(3)))


def test_what_comes_over_http(life: Life) -> None:
    user = User("", tags=("impersonator",))
    for body in numbered(2):
        done = LocalPublish(life.broker, life.broker.vhosts["/"], user)
        done.run("x", "", Properties(delivery_mode=2), body)
    life.turns()
    assert offsets(life) == [0, 1]


def test_a_message_that_several_keep_has_the_offset_of_none(life: Life) -> None:
    """That of one would lead to the wrong place in another."""
    declare(life, "y")
    life.client.publish(b"one", PERSISTENT, exchange="y")
    for name in ("x", "y"):
        life.client.call("Exchange.Bind", source="amq.fanout", destination=name)
    life.client.publish(b"two", PERSISTENT, exchange="amq.fanout")
    assert offsets(life) == [None]
    assert replayed(life) == [(0, b"two")]


def test_an_offset_of_another_exchange_gives_way(life: Life) -> None:
    headers = {"x-offset": "mine", "k": 1}
    life.client.publish(b"one", {**PERSISTENT, "headers": headers}, exchange="x")
    (reply,) = taken(life)
    assert reply.headers == {"x-offset": 0, "k": 1}


def test_what_is_wanted_at_once_is_kept_when_it_is_delivered(life: Life) -> None:
    replies = life.client.publish(b"nobody", PERSISTENT, exchange="x", immediate=True)
    assert [reply["reply_code"] for reply in replies if reply.name == "Basic.Return"] == [313]
    reader: Client = life.connect()
    reader.consume("q", no_ack=True)
    replies = life.client.publish(b"somebody", PERSISTENT, exchange="x", immediate=True)
    assert not [reply for reply in replies if reply.name == "Basic.Return"]
    assert [reply.body for reply in reader.come() if reply.name == "Basic.Deliver"] == [b"somebody"]
    assert replayed(life) == [(0, b"somebody")]


def test_a_refused_copy_is_kept_all_the_same(life: Life) -> None:
    """The queue has no room, the exchange has: the publisher is told of the queue."""
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
