"""Consuming many messages at a time inside this process, without acks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.amqp import make_broker, take_turns
from warrenmq.core.broker import Broker
from warrenmq.core.local.bulk_session import BulkSession
from warrenmq.core.local.publisher import LocalPublisher
from warrenmq.core.message.model import Numbered, Properties
from warrenmq.core.queue.queue import Queue


@pytest.fixture
def broker() -> Broker:
    return make_broker()


@pytest.fixture
def queue(broker: Broker) -> Queue:
    return broker.vhosts["/"].declare_queue("q", auto_delete=True)


def publish(broker: Broker, *bodies: bytes) -> None:
    publisher = LocalPublisher(broker, broker.vhosts["/"], None)
    for body in bodies:
        publisher.publish("", "q", Properties(), body)
    take_turns(broker)


class Reader:
    """Keeps what it gets, and fails at a message `bad`."""

    def __init__(self, broker: Broker, queue: Queue) -> None:
        self.bodies: list[bytes] = []
        self.ended: list[Exception | None] = []
        self.session = BulkSession(broker, queue, self.take, self.end)
        take_turns(broker)

    def take(self, messages: Sequence[Numbered]) -> None:
        self.bodies += [message.body for _, message in messages]
        if b"bad" in self.bodies:
            raise ValueError("bad")

    def end(self, error: Exception | None) -> None:
        self.ended.append(error)


def test_messages_leave_the_queue(broker: Broker, queue: Queue) -> None:
    reader = Reader(broker, queue)
    publish(broker, b"a", b"b")
    assert reader.bodies == [b"a", b"b"]
    assert (queue.ready_count, queue.unacked_count) == (0, 0)


def test_paused_session_leaves_messages_in_the_queue(broker: Broker, queue: Queue) -> None:
    reader = Reader(broker, queue)
    reader.session.pause()
    publish(broker, b"a", b"b")
    assert queue.ready_count == 2
    reader.session.resume()
    take_turns(broker)
    assert reader.bodies == [b"a", b"b"]


def test_ending_the_session_deletes_an_auto_delete_queue(broker: Broker, queue: Queue) -> None:
    """An auto-delete queue goes with its last consumer, who is not told."""
    reader = Reader(broker, queue)
    reader.session.end()
    take_turns(broker)
    assert (queue.deleted, reader.ended) == (True, [])


def test_the_queue_is_deleted(broker: Broker, queue: Queue) -> None:
    reader = Reader(broker, queue)
    broker.vhosts["/"].delete_queue("q")
    take_turns(broker)
    assert reader.ended == [None]


def test_error_ends_only_its_session(
    broker: Broker, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    failing = Reader(broker, queue)
    other = Reader(broker, broker.vhosts["/"].declare_queue("other"))
    LocalPublisher(broker, broker.vhosts["/"], None).publish("", "other", Properties(), b"o")
    publish(broker, b"a", b"bad")
    assert [str(error) for error in failing.ended] == ["bad"]
    assert queue.deleted
    assert (other.bodies, other.ended) == ([b"o"], [])
    assert "a reader of queue 'q' failed and was cancelled" in caplog.text
