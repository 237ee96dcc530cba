"""Estimates of the memory of objects and buffers."""

from __future__ import annotations

from tests.conformance import frames
from tests.support.amqp import Client, make_broker, method, publish
from tests.support.manual_store import ManualStore
from warrenmq.core.resources.footprint import (
    BINDING_BYTES,
    CHANNEL_BYTES,
    CONSUMER_BYTES,
    EXCHANGE_BYTES,
    QUEUE_BYTES,
    connection_bytes,
    shared_bytes,
)


def test_objects_of_a_connection_are_counted() -> None:
    client = Client(make_broker())
    size = connection_bytes(client.connection)
    client.send("Channel.Open", 2)
    assert connection_bytes(client.connection) == size + CHANNEL_BYTES
    client.declare("q")
    client.consume("q")
    assert connection_bytes(client.connection) == size + CHANNEL_BYTES + CONSUMER_BYTES
    client.send("Channel.Close", 1)
    client.send("Channel.Close", 2)
    assert connection_bytes(client.connection) == size - CHANNEL_BYTES


def test_buffers_are_counted() -> None:
    client = Client(make_broker())
    size = connection_bytes(client.connection)
    client.feed(publish(1, bytes(20_000), routing_key="q")[:-1])
    assert connection_bytes(client.connection) > size + 20_000
    client.feed(b"\xce")
    assert connection_bytes(client.connection) == size
    client.connection.output.write(bytes(300))
    assert connection_bytes(client.connection) == size + 300


def test_partial_messages_are_counted_at_once() -> None:
    client = Client(make_broker())
    alarms = client.broker.alarms
    message = publish(1, bytes(20_000), frame_max=10_008, routing_key="q")
    client.feed(message[:-20_016])
    size = alarms.used_bytes
    for part, grown in ((message[-20_016:-10_008], 10_000), (message[-10_008:-8], 10_000)):
        client.feed(part)
        assert alarms.used_bytes == size + grown
    client.feed(message[-8:])
    assert alarms.used_bytes == 0


def test_a_declared_size_is_not_counted() -> None:
    client = Client(make_broker())
    size = connection_bytes(client.connection)
    header = frames.frame(frames.HEADER, 1, frames.content_header(16 * 2**20, None))
    client.feed(method(1, "Basic.Publish", routing_key="q") + header)
    assert connection_bytes(client.connection) - size < 1000


def test_shared_objects_are_counted() -> None:
    store = ManualStore()
    broker = make_broker(store=store)
    size = shared_bytes(broker)
    client = Client(broker)
    client.declare("q")
    assert shared_bytes(broker) == size + QUEUE_BYTES
    client.send("Exchange.Declare", exchange="x", exchange_type="direct")
    client.send("Queue.Bind", queue="q", exchange="x", routing_key="k")
    assert shared_bytes(broker) == size + QUEUE_BYTES + EXCHANGE_BYTES + BINDING_BYTES
    store.progress.behind_bytes = 777
    assert shared_bytes(broker) == size + QUEUE_BYTES + EXCHANGE_BYTES + BINDING_BYTES + 777
