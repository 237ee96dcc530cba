"""kombu: producers and consumers, the choice of prefetch, native delays."""

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
