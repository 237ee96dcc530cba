"""Transactions through pika and py-amqp, as their users write them."""

from __future__ import annotations

from collections.abc import Callable

import amqp
import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from .support import (
    WAIT_S,
    Broker,
    Inbox,
    channel_closed,
    fresh,
    get_bodies,
    publish_numbers,
    pump,
    ready_count,
    wait_ready,
)

Connect = Callable[..., pika.BlockingConnection]


@pytest.fixture
def reader(channel: BlockingChannel) -> BlockingChannel:
    """Another channel of the connection that owns the queue."""
    return channel.connection.channel()


def test_commit(channel: BlockingChannel, reader: BlockingChannel, queue: str) -> None:
    channel.tx_select()
    sent = publish_numbers(channel, queue, 1, 20)
    assert ready_count(channel, queue) == 0
    channel.tx_commit()
    assert get_bodies(reader, queue, 20) == sent


def test_rollback(channel: BlockingChannel, reader: BlockingChannel, queue: str) -> None:
    channel.tx_select()
    publish_numbers(channel, queue, 1, 5)
    channel.tx_rollback()
    sent = publish_numbers(channel, queue, 6, 7)
    channel.tx_commit()
    assert get_bodies(reader, queue, 2) == sent


def test_acks_roll_back(channel: BlockingChannel, reader: BlockingChannel, queue: str) -> None:
    sent = publish_numbers(reader, queue, 1, 4)
    wait_ready(reader, queue, 4)
    channel.tx_select()
    inbox = Inbox(channel, queue, auto_ack=False)
    assert inbox.wait_bodies(4) == sent
    channel.basic_ack(4, multiple=True)
    channel.tx_rollback()
    channel.basic_ack(2)
    channel.tx_commit()
    channel.close()
    assert get_bodies(reader, queue, 3) == [sent[0], sent[2], sent[3]]


def move(worker: BlockingChannel, source: str, target: str, committed: int) -> None:
    """Moves messages one by one, and the one behind them without a commit."""
    worker.tx_select()
    worker.basic_qos(prefetch_count=1)
    inbox = Inbox(worker, source, auto_ack=False)
    for place in range(committed + 1):
        delivery = inbox.wait(place + 1)[place]
        worker.basic_publish("", target, delivery.body)
        worker.basic_ack(delivery.method.delivery_tag)
        if place < committed:
            worker.tx_commit()


def test_a_worker_that_dies_moves_nothing_twice(connect: Connect, channel: BlockingChannel) -> None:
    source, target = fresh("source"), fresh("target")
    for queue in (source, target):
        channel.queue_declare(queue)
    try:
        sent = publish_numbers(channel, source, 1, 6)
        for left in (3, 1):
            worker = connect().channel()
            move(worker, source, target, committed=3 if left == 3 else 2)
            worker.connection.close()
            wait_ready(channel, source, left)
        assert get_bodies(channel, target, 5) == sent[:5]
        assert get_bodies(channel, source, 1) == sent[5:]
    finally:
        for queue in (source, target):
            channel.queue_delete(queue)


def test_unroutable_messages_come_with_the_commit(channel: BlockingChannel) -> None:
    returned: list[bytes] = []
    channel.add_on_return_callback(lambda _, method, properties, body: returned.append(body))
    channel.tx_select()
    channel.basic_publish("", "no.queue", b"lost", mandatory=True)
    channel.basic_qos()
    assert returned == []
    channel.tx_commit()
    pump(channel.connection, lambda: returned == [b"lost"], "the return")


def test_modes_exclude_each_other(connect: Connect) -> None:
    connection = connect()
    channel = connection.channel()
    channel.tx_select()
    text = "PRECONDITION_FAILED - cannot switch from tx to confirm mode"
    with channel_closed(406, text):
        channel.confirm_delivery()
    channel = connection.channel()
    channel.confirm_delivery()
    text = "PRECONDITION_FAILED - cannot switch from confirm to tx mode"
    with channel_closed(406, text):
        channel.tx_select()


def test_commit_without_select(channel: BlockingChannel) -> None:
    with channel_closed(406, "PRECONDITION_FAILED - channel is not transactional"):
        channel.tx_commit()


def test_py_amqp(broker: Broker) -> None:
    with amqp.Connection(
        f"{broker.host}:{broker.port}", userid="guest", password="guest", login_method="PLAIN",
        connect_timeout=WAIT_S,
    ) as connection:  # fmt: skip
        channel = connection.channel()
        queue = channel.queue_declare(exclusive=True).queue
        channel.tx_select()
        for end in (channel.tx_rollback, channel.tx_commit):
            channel.basic_publish(amqp.Message(end.__name__), routing_key=queue)
            assert channel.basic_get(queue) is None
            end()
        message = channel.basic_get(queue)
        assert message.body == "tx_commit"
        channel.basic_ack(message.delivery_tag)
        channel.tx_rollback()
        channel.basic_ack(message.delivery_tag)
        channel.tx_commit()
        assert channel.basic_get(queue) is None
