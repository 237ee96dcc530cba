"""Many channels, connections and threads of pika; and that an error stays where it belongs."""

from __future__ import annotations

import threading
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from .conftest import Connect
from .support import (
    WAIT_S,
    Broker,
    Inbox,
    channel_closed,
    fresh,
    get,
    prefetch_in_bytes_refused,
    publish_numbers,
    pump,
    wait_ready,
)

PUBLISHERS, MESSAGES = 8, 200


def test_a_hundred_channels_at_once(connection: pika.BlockingConnection) -> None:
    channels = [connection.channel() for _ in range(100)]
    queues = [channel.queue_declare("", exclusive=True).method.queue for channel in channels]
    inboxes = [Inbox(channel, queue) for channel, queue in zip(channels, queues, strict=True)]
    for round_number in range(5):
        for number, channel in enumerate(channels):
            target = (number + 1) % 100
            channel.basic_publish("", queues[target], f"{round_number} for {target}")
    pump(connection, lambda: all(len(inbox.bodies) == 5 for inbox in inboxes), "500 deliveries")
    assert [inbox.bodies for inbox in inboxes] == [
        [f"{round_number} for {number}".encode() for round_number in range(5)]
        for number in range(100)
    ]


def test_a_channel_error_leaves_the_others_alone(
    connection: pika.BlockingConnection, queue: str
) -> None:
    sound, broken = connection.channel(), connection.channel()
    inbox = Inbox(sound, queue)
    sound.basic_publish("", queue, b"before")
    with channel_closed(404, "NOT_FOUND - no queue 'no.queue' in vhost '/'"):
        broken.queue_declare("no.queue", passive=True)
    sound.basic_publish("", queue, b"after")
    assert inbox.wait_bodies(2) == [b"before", b"after"]
    again = connection.channel(broken.channel_number)
    assert again.queue_declare(queue, passive=True).method.consumer_count == 1


def test_a_channel_error_returns_what_was_not_acked(
    connection: pika.BlockingConnection, channel: BlockingChannel, queue: str
) -> None:
    broken = connection.channel()
    publish_numbers(channel, queue, 1, 3)
    Inbox(broken, queue, auto_ack=False).wait(3)
    with channel_closed(404, "NOT_FOUND - no exchange 'no.exchange' in vhost '/'"):
        broken.exchange_declare("no.exchange", passive=True)
    wait_ready(channel, queue, 3)
    found = [get(channel, queue) for _ in range(3)]
    assert [one.body for one in found] == [b"1", b"2", b"3"]
    assert all(one.method.redelivered for one in found)


def test_what_came_before_a_channel_error_stands(
    connection: pika.BlockingConnection, channel: BlockingChannel, queue: str
) -> None:
    broken = connection.channel()
    publish_numbers(broken, queue, 1, 3)
    with channel_closed(404, "NOT_FOUND - no exchange 'no.exchange' in vhost '/'"):
        broken.basic_publish("no.exchange", "", b"the error")
        publish_numbers(broken, queue, 4, 6)
        broken.queue_declare(queue, passive=True)
    wait_ready(channel, queue, 3)
    assert [get(channel, queue).body for _ in range(3)] == [b"1", b"2", b"3"]


def test_a_connection_error_leaves_the_others_alone(connect: Connect) -> None:
    sound, broken = connect(), connect()
    queue = sound.channel().queue_declare("", auto_delete=True).method.queue
    inbox = Inbox(sound.channel(), queue)
    owned = fresh("owned")
    channel = broken.channel()
    channel.queue_declare(owned, exclusive=True)
    channel.basic_publish("", queue, b"before the end")
    with prefetch_in_bytes_refused():
        channel.basic_qos(prefetch_size=1)
    assert inbox.wait_bodies(1) == [b"before the end"]
    with channel_closed(404, f"NOT_FOUND - no queue '{owned}' in vhost '/'"):
        sound.channel().queue_declare(owned, passive=True)
    assert sound.is_open


@pytest.mark.parametrize("count", [1, 50])
def test_connections_come_and_go(broker: Broker, channel: BlockingChannel, count: int) -> None:
    queue = fresh("queue")
    channel.queue_declare(queue, auto_delete=True)
    for number in range(count):
        with pika.BlockingConnection(broker.pika_parameters()) as connection:
            other = connection.channel()
            other.confirm_delivery()
            other.basic_publish("", queue, str(number))
    assert Inbox(channel, queue).wait_bodies(count) == [str(n).encode() for n in range(count)]


def test_threads_with_a_connection_each(broker: Broker, channel: BlockingChannel) -> None:
    queue = fresh("queue")
    channel.queue_declare(queue, auto_delete=True)

    def publish(publisher: int) -> None:
        with pika.BlockingConnection(broker.pika_parameters()) as connection:
            own = connection.channel()
            own.confirm_delivery()
            for number in range(MESSAGES):
                own.basic_publish("", queue, f"{publisher} {number}")

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(PUBLISHERS)]
    for thread in threads:
        thread.start()
    bodies = Inbox(channel, queue).wait_bodies(PUBLISHERS * MESSAGES)
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()
    for publisher in range(PUBLISHERS):
        own = [int(body.split()[1]) for body in bodies if body.startswith(b"%d " % publisher)]
        assert own == list(range(MESSAGES))


def test_a_thread_may_ack_through_its_connection(
    connection: pika.BlockingConnection, channel: BlockingChannel, queue: str
) -> None:
    channel.basic_qos(prefetch_count=1)
    publish_numbers(channel, queue, 1, 10)
    done: list[bytes] = []
    workers: list[threading.Thread] = []

    def work(tag: int, body: bytes) -> None:
        done.append(body)
        connection.add_callback_threadsafe(lambda: channel.basic_ack(tag))

    def on_message(_: object, method: Any, properties: object, body: bytes) -> None:
        worker = threading.Thread(target=work, args=(method.delivery_tag, body))
        workers.append(worker)
        worker.start()

    channel.basic_consume(queue, on_message)
    pump(connection, lambda: len(done) == 10, "ten acknowledged messages")
    for worker in workers:
        worker.join(WAIT_S)
    assert done == [str(number).encode() for number in range(1, 11)]
