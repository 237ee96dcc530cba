"""Commits that make dead letters: all of it is one group of the log."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.amqp import Client, bodies, make_broker, method, names, take_turns
from warrenmq.core.proto import transaction
from warrenmq.core.republish.republisher import REPUBLISHED_PER_TURN

from .test_transaction import PERSISTENT, Store, filled, row, synced

TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def client(store: Store) -> Client:
    """As for transactions, with a durable queue `d` whose dead letters go to `dead`."""
    client = Client(make_broker(store))
    client.declare("q", durable=True)
    client.declare("dead", durable=True)
    client.declare("d", durable=True, arguments=TO_DEAD)
    synced(client, store)
    client.call("Tx.Select")
    return client


def prepared(client: Client, store: Store, count: int, queue: str = "d") -> None:
    """That many messages outstanding, and nothing noted."""
    filled(client, store, count, queue)
    store.groups.clear()
    store.alone.clear()


def rejects(count: int, first: int = 1) -> bytes:
    tags = range(first, first + count)
    return b"".join(method(1, "Basic.Reject", delivery_tag=tag, requeue=False) for tag in tags)


def happened(store: Store) -> list[list[str]]:
    """The groups that hold anything; outside of them there must be nothing."""
    assert store.alone == []
    return [group for group in store.groups if group]


def dead(client: Client) -> list[bytes]:
    client.call("Channel.Open", 8)
    found = client.consume("dead", "dead", 8, no_ack=True)
    client.call("Channel.Close", 8)
    return bodies(found)


def test_rejected_messages_are_read_from_disk_before_the_commit(
    client: Client, store: Store
) -> None:
    prepared(client, store, 3)
    store.evict_all()
    client.feed(rejects(3) + row(1) + method(1, "Tx.Commit") + method(1, "Basic.Qos"))
    client.feed(row(1) + method(1, "Tx.Commit"))
    assert (happened(store), synced(client, store)) == ([], [])
    while store.arrive():
        take_turns(client.broker)
    assert happened(store)[0][:2] == ["append 1", "append 3"]
    assert happened(store)[1:] == [["append 1"]], "the second commit waits for the first"
    answers = synced(client, store)
    assert names(answers) == ["Tx.CommitOk", "Basic.QosOk", "Tx.CommitOk"]
    assert client.broker.memory.resident_bytes >= 0


def test_a_rejected_message_that_cannot_be_read_is_not_settled(
    client: Client, store: Store
) -> None:
    prepared(client, store, 1)
    store.evict_all()
    store.batches.written.clear()
    store.batches.reads.clear()
    client.feed(rejects(1) + row(1) + method(1, "Tx.Commit"))
    ((_, ready),) = store.batches.reads
    store.batches.reads.clear()
    ready()
    take_turns(client.broker)
    assert happened(store) == [["append 1"]]
    assert names(synced(client, store)) == ["Tx.CommitOk"]
    assert client.broker.vhosts["/"].queues["d"].unacked_count == 0


@pytest.mark.parametrize("end", ["Channel.Close", "Connection.Close", "lost"])
def test_a_commit_survives_the_end_of_its_channel(client: Client, store: Store, end: str) -> None:
    prepared(client, store, 2)
    store.evict_all()
    client.publish(b"nowhere", PERSISTENT, routing_key="nobody", mandatory=True)
    client.feed(rejects(2) + method(1, "Tx.Commit") + rejects(1))
    if end == "lost":
        client.connection.lost()
    else:
        assert names(client.send(end)) == [f"{end}Ok"]
    while store.arrive():
        take_turns(client.broker)
    assert client.come() == []
    found = {name: queue.ready_count for name, queue in client.broker.vhosts["/"].queues.items()}
    assert (found["d"], found["dead"]) == (0, 2)
    assert client.connection.output.waiting_reply_bytes == 0


@pytest.mark.parametrize(("gone", "left"), [("dead", 50), ("d", REPUBLISHED_PER_TURN + 50)])
def test_a_queue_is_deleted_during_a_commit(
    client: Client, store: Store, gone: str, left: int
) -> None:
    count = REPUBLISHED_PER_TURN + 50
    prepared(client, store, count)
    client.call("Channel.Open", 2)
    client.connection.receive(rejects(count) + method(1, "Tx.Commit"))
    client.broker.turn()
    client.connection.receive(method(2, "Queue.Delete", queue=gone))
    client.connection.receive(method(2, "Queue.Declare", queue=gone, durable=True))
    take_turns(client.broker)
    answers = names(client.come()) + names(synced(client, store))
    assert answers == ["Queue.DeleteOk", "Queue.DeclareOk", "Tx.CommitOk"]
    assert client.messages("dead") == left


def test_a_return_precedes_its_commit_ok(client: Client, store: Store) -> None:
    prepared(client, store, 1)
    store.evict_all()
    client.publish(b"r", PERSISTENT, routing_key="nobody", mandatory=True)
    client.feed(rejects(1) + method(1, "Tx.Commit") + method(1, "Basic.Qos"))
    while store.arrive():
        take_turns(client.broker)
    found = synced(client, store)
    assert names(found) == ["Basic.Return", "Tx.CommitOk", "Basic.QosOk"]


@pytest.mark.parametrize(
    ("requeue", "kind"), [("Basic.Reject", "quorum"), ("Basic.Nack", "classic")]
)
def test_a_commit_dead_letters_by_delivery_limit(
    client: Client, store: Store, requeue: str, kind: str
) -> None:
    arguments: dict[str, Any] = TO_DEAD | {"x-delivery-limit": 1, "x-queue-type": kind}
    client.declare("l", durable=True, arguments=arguments)
    prepared(client, store, 2, "l")
    client.feed(method(1, requeue, delivery_tag=1, requeue=True) + method(1, "Tx.Commit"))
    synced(client, store)
    assert client.call("Basic.Get", queue="l").name == "Basic.GetOk"
    store.groups.clear()
    store.alone.clear()
    again = b"".join(method(1, requeue, delivery_tag=tag, requeue=True) for tag in (2, 3))
    client.feed(again + method(1, "Tx.Commit"))
    assert happened(store) == [["append 1", "settle 1"]]
    assert names(synced(client, store)) == ["Tx.CommitOk"]
    assert (client.messages("l"), dead(client)) == (1, [b"0"])


def test_dead_letters_count_towards_the_limit(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.call("Channel.Open", 2)
    for _ in range(3):
        client.publish(bytes(4_000), PERSISTENT, channel=2, routing_key="d")
    synced(client, store)
    for _ in range(3):
        client.call("Basic.Get", queue="d")
    monkeypatch.setattr(transaction, "TRANSACTION_MAX_BYTES", 10_000)
    (close,) = client.feed(rejects(3))
    assert (close["reply_code"], close["class_id"]) == (406, 60)
    assert "its limit of 10000" in close["reply_text"]
    assert client.call("Queue.Declare", 2, queue="d", passive=True)["message_count"] == 3


def test_an_internal_error_closes_its_connection_alone(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(client, store, 1)

    def broken(*_: object) -> int:
        raise RuntimeError("broken")

    client.feed(rejects(1))
    monkeypatch.setattr(type(client.broker), "publish", broken)
    (close,) = client.send("Tx.Commit")
    assert (close.name, close["reply_code"]) == ("Connection.Close", 541)
