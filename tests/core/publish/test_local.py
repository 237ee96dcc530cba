"""Publishing and consuming inside this process: the same rules as over AMQP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.amqp import Client, make_broker, take_turns
from tests.support.amqp import publish as amqp_publish
from tests.support.manual_store import ManualStore
from warrenmq.core.auth import User
from warrenmq.core.broker import Broker
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.batch import MessageRange
from warrenmq.core.message.model import Message, Properties, Table
from warrenmq.core.publish.local import LocalDelivery, LocalPublish, LocalSession, ack_all
from warrenmq.core.publish.local_batch import LocalBatch
from warrenmq.core.queue.classic import ClassicQueue
from warrenmq.core.queue.queue import Queue


@pytest.fixture
def broker() -> Broker:
    return make_broker()


@pytest.fixture
def queue(broker: Broker) -> Queue:
    return broker.vhosts["/"].declare_queue("q")


def publish(
    broker: Broker,
    body: bytes = b"x",
    exchange: str = "",
    key: str = "q",
    queue: Queue | None = None,
    **properties: Any,
) -> LocalPublish:
    done = LocalPublish(broker, broker.vhosts["/"], User("app")).run(
        exchange,
        key,
        Properties(**properties),
        body,
        () if queue is None else (queue,),
    )
    take_turns(broker)
    return done


class Application:
    """Keeps what it is handed."""

    def __init__(self, queue: Queue, prefetch: int = 0, arguments: Table | None = None) -> None:
        self.deliveries: list[LocalDelivery] = []
        self.ended = 0
        self.broker = queue._broker
        self.session = LocalSession(
            self.broker,  # type: ignore[arg-type]
            queue,
            prefetch=prefetch,
            on_delivery=self.take,
            on_cancel=self.end,
            arguments=arguments,
        )
        take_turns(self.broker)  # type: ignore[arg-type]

    def take(self, delivery: LocalDelivery) -> None:
        self.deliveries.append(delivery)

    def end(self) -> None:
        self.ended += 1

    @property
    def bodies(self) -> list[bytes]:
        return [delivery.message.body for delivery in self.deliveries]


# -- publishing


def test_a_message_arrives_as_it_was(broker: Broker, queue: Queue) -> None:
    application = Application(queue)
    properties = Properties(
        content_type="text/plain", headers={"a": [1, {"b": None}]}, delivery_mode=2, priority=3,
        message_id="m", timestamp=1_700_000_000, type="t",
    )  # fmt: skip
    done = LocalPublish(broker, broker.vhosts["/"], User("app")).run("", "q", properties, b"body")
    take_turns(broker)
    (delivery,) = application.deliveries
    assert delivery.message == Message("", "q", properties, b"body", redelivered=False)
    assert (done.unrouted, done.rejected, done.commit) == (False, False, 0)


def test_unrouted(broker: Broker) -> None:
    assert publish(broker, key="none").unrouted
    assert publish(broker, exchange="amq.topic").unrouted


def test_rejected(broker: Broker) -> None:
    broker.vhosts["/"].declare_queue(
        "full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"}
    )
    done = publish(broker, key="full")
    assert done.rejected
    assert not done.unrouted


def test_commit() -> None:
    store = ManualStore()
    broker = make_broker(store)
    broker.vhosts["/"].declare_queue("q", durable=True)
    assert publish(broker).commit == 0
    assert publish(broker, delivery_mode=2).commit == 2  # 1 was the queue
    assert store.committed == 0


@pytest.mark.parametrize(("exchange", "code"), [("none", 404), ("amq.rabbitmq.trace", 403)])
def test_exchanges_that_can_not_be_published_to(broker: Broker, exchange: str, code: int) -> None:
    with pytest.raises(ChannelError) as caught:
        publish(broker, exchange=exchange)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "properties",
    [{"expiration": "soon"}, {"user_id": "other"}, {"headers": {"CC": "q"}},
     {"reply_to": "amq.rabbitmq.reply-to"}],
)  # fmt: skip
def test_properties_that_amqp_refuses(
    broker: Broker, queue: Queue, properties: dict[str, Any]
) -> None:
    with pytest.raises(ChannelError) as caught:
        publish(broker, **properties)
    assert caught.value.code == 406
    assert queue.ready_count == 0


@pytest.mark.parametrize("long", [{"key": "k" * 256}, {"message_id": "ü" * 128}])
def test_what_amqp_can_not_carry(broker: Broker, long: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="255"):
        publish(broker, **long)


def test_straight_into_a_queue(broker: Broker, queue: Queue) -> None:
    """The key is another one's, so are the copies: neither decides anything."""
    other = broker.vhosts["/"].declare_queue("other")
    application = Application(queue)
    publish(broker, key="other", queue=queue, headers={"CC": ["other"]})
    assert other.ready_count == 0
    (delivery,) = application.deliveries
    assert (delivery.message.routing_key, delivery.message.exchange) == ("other", "")


def test_amqp_clients_get_it(broker: Broker) -> None:
    client = Client(broker)
    client.declare("mine")
    client.consume("mine", no_ack=True)
    publish(broker, b"hello", key="mine", content_type="text/plain")
    (delivery,) = client.come()
    assert delivery.body == b"hello"
    assert delivery.properties is not None
    assert delivery.properties.content_type == "text/plain"


def test_a_turn_is_asked_for(broker: Broker, queue: Queue) -> None:
    asked: list[bool] = []
    broker.on_work = lambda: asked.append(True)
    publish(broker)
    assert asked


# -- consuming


def test_prefetch(broker: Broker, queue: Queue) -> None:
    for number in range(5):
        publish(broker, b"%d" % number)
    application = Application(queue, prefetch=2)
    assert application.bodies == [b"0", b"1"]
    assert application.session.unacked_count == 2
    application.deliveries[1].ack()
    take_turns(broker)
    assert application.bodies == [b"0", b"1", b"2"]
    assert queue.unacked_count == 2


def test_settled_once(broker: Broker, queue: Queue) -> None:
    application = Application(queue)
    publish(broker)
    (delivery,) = application.deliveries
    delivery.ack()
    delivery.ack()
    delivery.nack(requeue=True)
    take_turns(broker)
    assert (queue.unacked_count, queue.ready_count) == (0, 0)
    assert len(application.deliveries) == 1


def test_sequence_stays_over_redeliveries(broker: Broker, queue: Queue) -> None:
    application = Application(queue)
    publish(broker)
    publish(broker)
    application.deliveries[0].nack(requeue=True)
    take_turns(broker)
    first, second, again = application.deliveries
    assert again.sequence == first.sequence != second.sequence
    assert again.message.redelivered
    assert not first.message.redelivered


def test_refused_for_good(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    dead = vhost.declare_queue("dead")
    queue = vhost.declare_queue(
        "q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    )
    application = Application(queue)
    publish(broker)
    application.deliveries[0].nack(requeue=False)
    take_turns(broker)
    assert (queue.unacked_count, dead.ready_count) == (0, 1)


def test_consumers_share(broker: Broker, queue: Queue) -> None:
    one, two = Application(queue), Application(queue)
    for _ in range(10):
        publish(broker)
    assert (len(one.deliveries), len(two.deliveries)) == (5, 5)
    assert queue.consumer_count == 2


def test_priority(broker: Broker, queue: Queue) -> None:
    low = Application(queue)
    high = Application(queue, arguments={"x-priority": 5})
    publish(broker)
    assert (len(low.deliveries), len(high.deliveries)) == (0, 1)
    with pytest.raises(ChannelError, match="x-priority"):
        Application(queue, arguments={"x-priority": "5"})
    assert queue.consumer_count == 2


# -- ending


def test_cancel_keeps_what_is_outstanding(broker: Broker, queue: Queue) -> None:
    application = Application(queue)
    publish(broker)
    application.session.cancel()
    publish(broker)
    assert len(application.deliveries) == 1
    assert queue.ready_count == 1
    application.deliveries[0].ack()
    assert queue.unacked_count == 0


def test_close_gives_back_in_order(broker: Broker, queue: Queue) -> None:
    for number in range(5):
        publish(broker, b"%d" % number)
    application = Application(queue, prefetch=4)
    application.deliveries[1].ack()
    application.session.close()
    application.deliveries[0].ack()
    take_turns(broker)
    assert (queue.unacked_count, queue.ready_count) == (0, 4)
    other = Application(queue)
    assert other.bodies == [b"0", b"2", b"3", b"4"]
    assert [delivery.message.redelivered for delivery in other.deliveries] == [
        True, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(("ending", "returned"), [("cancel", 4), ("close", 5)])
def test_ending_it_in_the_middle_of_a_delivery(
    broker: Broker, queue: Queue, ending: str, returned: int
) -> None:
    row = b"".join(amqp_publish(1, b"x", routing_key="q") for _ in range(5))
    Client(broker).feed(row)  # One batch, so they come in one piece.

    class Hasty(Application):
        def take(self, delivery: LocalDelivery) -> None:
            super().take(delivery)
            getattr(self.session, ending)()

    # The consumer gets its messages in a turn, when the session stands.
    hasty = Hasty(queue)
    assert len(hasty.deliveries) == 1
    assert (queue.ready_count, queue.unacked_count) == (returned, 5 - returned)
    fresh = Application(queue)
    assert [delivery.message.redelivered for delivery in fresh.deliveries] == (
        [True] * (returned - 4) + [False] * 4
    )


def test_the_end_of_the_queue_is_told_once(broker: Broker, queue: Queue) -> None:
    application = Application(queue)
    publish(broker)
    broker.vhosts["/"].delete_queue("q")
    assert application.ended == 1
    application.deliveries[0].nack(requeue=True)
    application.session.close()
    take_turns(broker)
    assert application.ended == 1


def test_an_auto_delete_queue_waits_for_who_comes_back(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    queue = vhost.declare_queue("pausing", auto_delete=True)
    Application(queue).session.cancel(comes_back=True)
    assert vhost.queues["pausing"] is queue
    Application(queue).session.cancel()
    assert "pausing" not in vhost.queues


def test_the_last_one_takes_an_auto_delete_queue_along(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    application = Application(vhost.declare_queue("gone", auto_delete=True))
    application.session.cancel()
    assert "gone" not in vhost.queues


def test_many_acks_at_once_settle_neighbours_together(
    broker: Broker, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = Application(queue)
    bodies = [b"%d" % number for number in range(6)]
    for part in (bodies[:4], bodies[4:]):
        LocalBatch(broker, broker.vhosts["/"], User("app")).run_all("", "q", Properties(), part)
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


def test_neighbours_share_what_is_equal(broker: Broker, queue: Queue) -> None:
    application = Application(queue)
    for type_ in ("a", "a", "b"):
        publish(broker, type=type_, headers={"h": 1})
    first, second, third = [one.message.properties for one in application.deliveries]
    assert first is second and first.headers == third.headers == {"h": 1}
    assert [first.type, third.type] == ["a", "b"]
