"""kombu: producers and consumers, the choice of prefetch, simple queues, native delays."""

# kombu says that it is typed, but its functions are not.
# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kombu import Connection, Consumer, Exchange, Message, Producer, Queue
from kombu.common import QoS
from kombu.transport.native_delayed_delivery import (
    bind_queue_to_native_delayed_delivery_exchange,
    calculate_routing_key,
    declare_native_delayed_delivery_exchanges_and_queues,
)

from .support import WAIT_S, Broker, fresh


@pytest.fixture
def connection(broker: Broker) -> Iterator[Connection]:
    with Connection(broker.url) as connection:
        yield connection


def drain(connection: Connection, done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen within {WAIT_S} s")
        try:
            connection.drain_events(timeout=0.05)
        except TimeoutError:
            continue


class Collector:
    """A consumer of kombu that keeps bodies and messages."""

    def __init__(self, connection: Connection, queue: Queue, **options: Any) -> None:
        self.bodies: list[Any] = []
        self.messages: list[Message] = []
        self._connection = connection
        self.consumer = Consumer(connection.channel(), queue, callbacks=[self._keep], **options)

    def _keep(self, body: Any, message: Message) -> None:
        self.bodies.append(body)
        self.messages.append(message)

    def wait(self, count: int) -> list[Any]:
        drain(self._connection, lambda: len(self.bodies) >= count, f"message {count}")
        return self.bodies


def test_evan_and_anders_follow_tony(connection: Connection) -> None:
    news = Exchange(fresh("news"), "topic", durable=False, auto_delete=True)
    queues = [Queue(fresh(name), news, "tony.#", exclusive=True) for name in ("evan", "anders")]
    collectors = [Collector(connection, queue, no_ack=True) for queue in queues]
    for collector in collectors:
        collector.consumer.consume()
    producer = Producer(connection.channel(), exchange=news)
    producer.publish({"tony": "is at work"}, routing_key="tony.status", headers={"mood": "busy"})
    producer.publish("is asleep", routing_key="evan.status")
    for collector in collectors:
        assert collector.wait(1) == [{"tony": "is at work"}]
        (message,) = collector.messages
        assert message.headers == {"mood": "busy"}
        assert message.content_type == "application/json"
        assert message.delivery_info["routing_key"] == "tony.status"


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_serialized_and_compressed_bodies(connection: Connection, compression: str | None) -> None:
    queue = Queue(fresh("queue"), exclusive=True)
    body = {"text": "grüße" * 1000, "number": 1.5, "list": [1, None, True]}
    collector = Collector(connection, queue, no_ack=True)
    collector.consumer.consume()
    Producer(connection.channel()).publish(
        body, routing_key=queue.name, serializer="json", compression=compression, retry=True
    )
    assert collector.wait(1) == [body]


def test_the_prefetch_that_kombu_chooses_can_be_raised(connection: Connection) -> None:
    """Celery takes `apply_global` from the broker's product and version, as done here."""
    queue = Queue(fresh("queue"), exclusive=True)
    collector = Collector(connection, queue)
    apply_global = not connection.qos_semantics_matches_spec
    collector.consumer.qos(prefetch_count=1, apply_global=apply_global)
    collector.consumer.consume()
    qos = QoS(lambda prefetch_count: collector.consumer.qos(
        prefetch_count=prefetch_count, apply_global=apply_global), 1)  # fmt: skip
    producer = Producer(connection.channel())
    for number in range(5):
        producer.publish(number, routing_key=queue.name)
    assert collector.wait(1) == [0]
    for count in (2, 3, 4):
        qos.increment_eventually()
        qos.update()
        assert collector.wait(count) == list(range(count))
    left = connection.channel()
    assert left.queue_declare(queue.name, passive=True).message_count == 1


def test_messages_settle_once(connection: Connection) -> None:
    queue = Queue(fresh("queue"), exclusive=True)
    collector = Collector(connection, queue, prefetch_count=1)
    collector.consumer.consume()
    producer = Producer(connection.channel())
    for text in ("ack", "reject", "requeue", "last"):
        producer.publish(text, routing_key=queue.name)
    for index, settle in enumerate(("ack", "reject", "requeue", "ack")):
        collector.wait(index + 1)
        getattr(collector.messages[index], settle)()
    assert collector.wait(5) == ["ack", "reject", "requeue", "requeue", "last"]
    redelivered = [message.delivery_info["redelivered"] for message in collector.messages]
    assert redelivered == [False, False, False, True, False]


def test_simple_queues(connection: Connection) -> None:
    simple = connection.SimpleQueue(fresh("simple"))
    for number in range(5):
        simple.put({"number": number})
    for number in range(5):
        message = simple.get(timeout=WAIT_S)
        assert message.payload == {"number": number}
        message.ack()
    with pytest.raises(simple.Empty):
        simple.get_nowait()
    simple.close()
    assert connection.channel().queue_delete(simple.queue.name) == 0


def test_unroutable_messages_come_back(connection: Connection) -> None:
    returned: list[tuple[int, str, str]] = []

    def on_return(error: Any, exchange: str, key: str, message: Any) -> None:
        returned.append((error.reply_code, exchange, key))

    producer = Producer(connection.channel(), exchange=Exchange("amq.direct"), on_return=on_return)
    producer.auto_declare = False
    producer.publish("is at work", routing_key="nobody", mandatory=True)
    drain(connection, lambda: bool(returned), "a return")
    assert returned == [(312, "amq.direct", "nobody")]


def test_queues_of_kombu_keep_their_arguments(connection: Connection) -> None:
    letters = Queue(fresh("letters"), exclusive=True)(connection.channel())
    letters.declare()
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": letters.name}
    queue = Queue(
        fresh("queue"), exclusive=True, expires=600, message_ttl=0.05, max_length=2,
        queue_arguments=arguments,
    )  # fmt: skip
    collector = Collector(connection, letters, no_ack=True)
    collector.consumer.consume()
    queue(connection.channel()).declare()
    producer = Producer(connection.channel())
    for number in range(3):
        producer.publish(number, routing_key=queue.name)
    assert collector.wait(3) == [0, 1, 2]
    deaths = [message.headers["x-death"][0]["reason"] for message in collector.messages]
    assert deaths == ["maxlen", "expired", "expired"]


def test_priorities(connection: Connection) -> None:
    """`max_priority` of the queue, `priority` of the message."""
    queue = Queue(fresh("queue"), exclusive=True, max_priority=10)(connection.channel())
    queue.declare()
    producer = Producer(connection.channel())
    for number, priority in enumerate([1, None, 9, 5, 12]):
        producer.publish(number, routing_key=queue.name, priority=priority)
    collector = Collector(connection, queue, no_ack=True)
    drain(connection, lambda: queue.queue_declare(passive=True).message_count == 5, "5 messages")
    collector.consumer.consume()
    assert collector.wait(5) == [4, 2, 3, 0, 1]


def test_single_active_consumer(connection: Connection) -> None:
    arguments = {"x-single-active-consumer": True}
    queue = Queue(fresh("queue"), durable=False, auto_delete=True, queue_arguments=arguments)
    first, second = (Collector(connection, queue, no_ack=True) for _ in range(2))
    for collector in (first, second):
        collector.consumer.consume()
    producer = Producer(connection.channel())
    for number in range(3):
        producer.publish(number, routing_key=queue.name)
    assert first.wait(3) == [0, 1, 2]
    first.consumer.cancel()
    producer.publish(3, routing_key=queue.name)
    assert second.wait(1) == [3]


def test_exchanges_bound_to_exchanges(connection: Connection) -> None:
    outer = Exchange(fresh("outer"), "topic", durable=False, auto_delete=True)
    inner = Exchange(fresh("inner"), "fanout", durable=False, auto_delete=True)
    channel = connection.channel()
    for exchange in (outer, inner):
        exchange(channel).declare()
    queue = Queue(fresh("queue"), inner, exclusive=True)
    collector = Collector(connection, queue, no_ack=True)
    collector.consumer.consume()
    inner(channel).bind_to(outer, routing_key="tony.*")
    producer = Producer(channel, exchange=outer, auto_declare=False)
    for key in ("tony.status", "evan.status", "tony.mood"):
        producer.publish(key, routing_key=key)
    assert collector.wait(2) == ["tony.status", "tony.mood"]


def test_native_delayed_delivery(connection: Connection) -> None:
    """28 queues with a TTL each, one power of two apart, chained through topic exchanges."""
    prefix = fresh("delay")
    declare_native_delayed_delivery_exchanges_and_queues(connection, "classic", prefix)
    target = Exchange(fresh("target"), "topic", durable=False)
    queue = Queue(fresh("queue"), target, routing_key="tasks", exclusive=True)
    collector = Collector(connection, queue, no_ack=True)
    collector.consumer.consume()
    bind_queue_to_native_delayed_delivery_exchange(connection, queue, prefix)
    delays = Exchange(f"{prefix}_celery_delayed_27", "topic")
    producer = Producer(connection.channel())
    producer.publish(
        "later", exchange=delays, routing_key=calculate_routing_key(1, "tasks"), declare=[]
    )
    producer.publish("now", exchange=target, routing_key="tasks")
    assert collector.wait(2) == ["now", "later"]
    death = collector.messages[1].headers["x-death"][0]
    assert (death["reason"], death["queue"]) == ("expired", f"{prefix}_celery_delayed_0")


def test_a_broken_connection_is_made_again(connection: Connection, broker: Broker) -> None:
    name = fresh("queue")
    producer = Producer(connection.channel(), auto_declare=False)
    queue = Queue(name, auto_delete=False, durable=True)
    queue(connection.channel()).declare()
    producer.publish("before", routing_key=name)
    connection.connection.transport.sock.shutdown(socket.SHUT_RDWR)
    publish = connection.ensure(producer, producer.publish, max_retries=3)
    publish("after", routing_key=name)
    with Connection(broker.url) as other:
        simple = other.SimpleQueue(name, no_ack=True)
        assert [simple.get(timeout=WAIT_S).payload for _ in range(2)] == ["before", "after"]
        simple.close()
        assert other.channel().queue_delete(name) == 0
