"""Consuming inside this process: the same rules as over AMQP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.amqp import Client, make_broker, take_turns
from tests.support.amqp import publish as amqp_publish
from warrenmq.core.broker import Broker
from warrenmq.core.errors import ChannelError
from warrenmq.core.local.publisher import LocalPublisher
from warrenmq.core.local.session import LocalDelivery, LocalSession, ack_all
from warrenmq.core.message.model import Properties, Table
from warrenmq.core.message.queue_entry import MessageRange
from warrenmq.core.queue.classic import ClassicQueue
from warrenmq.core.queue.queue import Queue


@pytest.fixture
def broker() -> Broker:
    return make_broker()


@pytest.fixture
def queue(broker: Broker) -> Queue:
    return broker.vhosts["/"].declare_queue("q")


def publish(broker: Broker, body: bytes = b"x", **properties: Any) -> None:
    publisher = LocalPublisher(broker, broker.vhosts["/"], None)
    publisher.publish("", "q", Properties(**properties), body)
    take_turns(broker)


class Application:
    """Keeps its deliveries."""

    def __init__(
        self, broker: Broker, queue: Queue, prefetch: int = 0, arguments: Table | None = None
    ) -> None:
        self.deliveries: list[LocalDelivery] = []
        self.ended = 0
        self.session = LocalSession(
            broker,
            queue,
            prefetch=prefetch,
            on_delivery=self.take,
            on_cancel=self.end,
            arguments=arguments,
        )
        take_turns(broker)

    def take(self, delivery: LocalDelivery) -> None:
        self.deliveries.append(delivery)

    def end(self) -> None:
        self.ended += 1

    @property
    def bodies(self) -> list[bytes]:
        return [delivery.message.body for delivery in self.deliveries]


# -- consuming


def test_cancel(broker: Broker) -> None:
    """Deliveries can still be acked; an auto-delete queue ends with its last session."""
    vhost = broker.vhosts["/"]
    queue = vhost.declare_queue("q", auto_delete=True)
    application = Application(broker, queue)
    publish(broker)
    application.session.cancel(comes_back=True)
    publish(broker)
    assert (len(application.deliveries), queue.ready_count) == (1, 1)
    application.deliveries[0].ack()
    assert queue.unacked_count == 0
    assert vhost.queues["q"] is queue
    Application(broker, queue).session.cancel()
    assert "q" not in vhost.queues


def test_redelivery_keeps_the_sequence_number(broker: Broker, queue: Queue) -> None:
    application = Application(broker, queue)
    publish(broker)
    publish(broker)
    application.deliveries[0].nack(requeue=True)
    take_turns(broker)
    first, second, again = application.deliveries
    assert again.sequence == first.sequence != second.sequence
    assert (again.message.redelivered, first.message.redelivered) == (True, False)


def test_a_delivery_is_settled_once(broker: Broker, queue: Queue) -> None:
    application = Application(broker, queue)
    publish(broker)
    (delivery,) = application.deliveries
    delivery.ack()
    delivery.ack()
    delivery.nack(requeue=True)
    take_turns(broker)
    assert (queue.unacked_count, queue.ready_count) == (0, 0)
    assert len(application.deliveries) == 1


def test_a_rejected_delivery_is_dead_lettered(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    dead = vhost.declare_queue("dead")
    queue = vhost.declare_queue(
        "q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    )
    application = Application(broker, queue)
    publish(broker)
    application.deliveries[0].nack(requeue=False)
    take_turns(broker)
    assert (queue.unacked_count, dead.ready_count) == (0, 1)


def test_consumer_priority_applies(broker: Broker, queue: Queue) -> None:
    low = Application(broker, queue)
    high = Application(broker, queue, arguments={"x-priority": 5})
    publish(broker)
    assert (len(low.deliveries), len(high.deliveries)) == (0, 1)
    with pytest.raises(ChannelError, match="x-priority"):
        Application(broker, queue, arguments={"x-priority": "5"})
    assert queue.consumer_count == 2


# -- ending


def test_close_requeues_in_order(broker: Broker, queue: Queue) -> None:
    for number in range(5):
        publish(broker, b"%d" % number)
    application = Application(broker, queue, prefetch=4)
    application.deliveries[1].ack()
    application.session.close()
    application.deliveries[0].ack()
    take_turns(broker)
    assert (queue.unacked_count, queue.ready_count) == (0, 4)
    other = Application(broker, queue)
    assert other.bodies == [b"0", b"2", b"3", b"4"]
    assert [delivery.message.redelivered for delivery in other.deliveries] == [
        True, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(("ending", "returned"), [("cancel", 4), ("close", 5)])
def test_cancel_or_close_during_a_delivery_keeps_the_rest(
    broker: Broker, queue: Queue, ending: str, returned: int
) -> None:
    row = b"".join(amqp_publish(1, b"x", routing_key="q") for _ in range(5))
    Client(broker).feed(row)  # One batch, so they come in one piece.

    class Hasty(Application):
        def take(self, delivery: LocalDelivery) -> None:
            super().take(delivery)
            getattr(self.session, ending)()

    # The consumer gets its messages in a turn, when the session stands.
    hasty = Hasty(broker, queue)
    assert len(hasty.deliveries) == 1
    assert (queue.ready_count, queue.unacked_count) == (returned, 5 - returned)
    fresh = Application(broker, queue)
    assert [delivery.message.redelivered for delivery in fresh.deliveries] == (
        [True] * (returned - 4) + [False] * 4
    )


def test_the_end_of_the_queue_is_reported_once(broker: Broker, queue: Queue) -> None:
    application = Application(broker, queue)
    publish(broker)
    broker.vhosts["/"].delete_queue("q")
    assert application.ended == 1
    application.deliveries[0].nack(requeue=True)
    application.session.close()
    take_turns(broker)
    assert application.ended == 1


def test_consecutive_acks_are_settled_together(
    broker: Broker, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = Application(broker, queue)
    bodies = [b"%d" % number for number in range(6)]
    for part in (bodies[:4], bodies[4:]):
        publisher = LocalPublisher(broker, broker.vhosts["/"], None)
        publisher.add("", "q", Properties(), part)
        publisher.flush()
    take_turns(broker)
    settled: list[int] = []
    settle = queue.settle

    def counted(messages: MessageRange) -> None:
        settled.append(messages.count)
        settle(messages)

    monkeypatch.setattr(ClassicQueue, "settle", lambda _, messages: counted(messages))
    zero, one, two, three, four, five = application.deliveries
    one.ack()
    ack_all([five, two, four, one, three])
    assert settled == [1, 2, 2] and queue.unacked_count == 1
    ack_all([two, zero])
    assert settled == [1, 2, 2, 1] and queue.unacked_count == 0


def test_equal_properties_are_shared(broker: Broker, queue: Queue) -> None:
    application = Application(broker, queue)
    for type_ in ("a", "a", "b"):
        publish(broker, type=type_, headers={"h": 1})
    first, second, third = [one.message.properties for one in application.deliveries]
    assert first is second and first.headers == third.headers == {"h": 1}
    assert [first.type, third.type] == ["a", "b"]
