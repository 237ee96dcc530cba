"""Transactions inside this process, whose commit checks the capacity of queues."""

from __future__ import annotations

import sys

import pytest

from tests.core.policy.support import clear, put
from tests.support.amqp import Client, make_broker, take_turns
from warrenmq.core.broker import Broker
from warrenmq.core.errors import QueueFull
from warrenmq.core.local.transaction import LocalTransaction
from warrenmq.core.publish.shares import FRAMED_MAX_BYTES

BEGAN = "queue 'q' in vhost '/' now rejects publishes when full; retry the commit"
SHORT = b"x"
LONG = bytes(FRAMED_MAX_BYTES + 1)


@pytest.fixture
def broker() -> Broker:
    return make_broker()


@pytest.fixture
def client(broker: Broker) -> Client:
    client = Client(broker)
    client.declare("q")
    return client


def buffered(broker: Broker, count: int, body: bytes = SHORT) -> LocalTransaction:
    user = broker.users.existing("guest")
    found = LocalTransaction(broker, broker.vhosts["/"], user, "", 1_000_000)
    found.add([(b"q", b"\x10\x00\x02", body)] * count)
    return found


def reject(broker: Broker, limit: int) -> None:
    put(broker, "full", max_length=limit, overflow="reject-publish")


def refused(broker: Broker, transaction: LocalTransaction, reason: str) -> None:
    """The commit is refused; nothing is published or remembered, and no memory is taken."""
    with pytest.raises(QueueFull, match=reason):
        transaction.commit(b"series", 1)
    transaction.drop()
    assert broker.vhosts["/"].queues["q"].ready_count == 0
    assert broker.memory.resident_bytes == 0


@pytest.mark.parametrize("ends", ["commit", "drop"])
def test_memory_does_not_grow_by_objects_per_row(broker: Broker, client: Client, ends: str) -> None:
    """A step that makes or frees something for each of a million rows takes a third of a second."""
    count, before = 20_000, sys.getallocatedblocks()
    user = broker.users.existing("guest")
    transaction = LocalTransaction(broker, broker.vhosts["/"], user, "", 100_000_000)
    for first in range(0, count, 500):
        transaction.add([(b"q", b"\0\0", b"%0100d" % at) for at in range(first, first + 500)])
    assert sys.getallocatedblocks() - before < count
    if ends == "commit":
        transaction.commit(b"series", 1)
    else:
        transaction.drop()
    take_turns(broker)
    ready = broker.vhosts["/"].queues["q"].ready_count
    assert ready == (count if ends == "commit" else 0)
    assert broker.memory.resident_bytes > 0 if ready else broker.memory.resident_bytes == 0


@pytest.mark.parametrize("body", [SHORT, LONG])
def test_commit_is_refused_after_a_queue_began_to_reject(
    broker: Broker, client: Client, body: bytes
) -> None:
    transaction = buffered(broker, 3, body)
    reject(broker, 2)
    refused(broker, transaction, BEGAN)
    refused(broker, buffered(broker, 3, body), r"is full: 0 \+ 3 messages exceed its limit of 2")
    buffered(broker, 2, body).commit(b"series", 1)
    assert broker.vhosts["/"].queues["q"].ready_count == 2


def test_commit_is_refused_after_a_queue_began_to_reject_between_rows(
    broker: Broker, client: Client
) -> None:
    transaction = buffered(broker, 3)
    reject(broker, 2)
    transaction.add([(b"q", b"\x10\x00\x02", SHORT)])
    refused(broker, transaction, BEGAN)


def test_commit_succeeds_after_a_queue_stopped_rejecting(broker: Broker, client: Client) -> None:
    reject(broker, 2)
    transaction = buffered(broker, 3)
    clear(broker, "full")
    transaction.commit(b"series", 1)
    assert broker.vhosts["/"].queues["q"].ready_count == 3


@pytest.mark.parametrize(("limit", "reason"), [(None, BEGAN), (9, "exceed its limit of 2")])
def test_commit_checks_a_recreated_queue(
    broker: Broker, client: Client, limit: int | None, reason: str
) -> None:
    if limit is not None:
        reject(broker, limit)
    transaction = buffered(broker, 3)
    client.call("Queue.Delete", queue="q")
    client.declare("q", arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    refused(broker, transaction, reason)
