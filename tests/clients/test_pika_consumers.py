"""Consuming with pika: acknowledgements, order, prefetch, fairness, priorities, cancellation."""

from __future__ import annotations

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from .conftest import Connect
from .support import (
    Inbox,
    channel_closed,
    get,
    get_bodies,
    prefetch_in_bytes_refused,
    publish_numbers,
    pump,
    ready_count,
    wait_ready,
)


def test_get_tells_what_is_left(channel: BlockingChannel, queue: str) -> None:
    assert channel.basic_get(queue) == (None, None, None)
    publish_numbers(channel, queue, 1, 3)
    left = []
    for _ in range(3):
        method, _, _ = channel.basic_get(queue, auto_ack=True)
        left.append((method.message_count, method.redelivered, method.exchange, method.routing_key))
    assert left == [(count, False, "", queue) for count in (2, 1, 0)]


def test_prefetch_bounds_what_is_out_and_each_ack_lets_one_more(
    channel: BlockingChannel, queue: str
) -> None:
    channel.confirm_delivery()
    bodies = publish_numbers(channel, queue, 1, 10)
    channel.basic_qos(prefetch_count=3)
    inbox = Inbox(channel, queue, auto_ack=False)
    assert inbox.wait_bodies(3) == bodies[:3]
    assert ready_count(channel, queue) == 7
    assert [delivery.method.delivery_tag for delivery in inbox.deliveries] == [1, 2, 3]
    channel.basic_ack(2)
    assert inbox.wait_bodies(4) == bodies[:4]
    assert ready_count(channel, queue) == 6
    channel.basic_ack(4, multiple=True)
    assert inbox.wait_bodies(7) == bodies[:7]
    assert ready_count(channel, queue) == 3
    channel.basic_ack(0, multiple=True)
    assert inbox.wait_bodies(10) == bodies
    assert ready_count(channel, queue) == 0


def test_prefetch_counts_per_consumer_or_for_the_channel(connect: Connect) -> None:
    connection = connect()
    for global_qos, outstanding in ((False, [2, 2]), (True, [1, 1])):
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_qos(prefetch_count=2, global_qos=global_qos)
        queues = [channel.queue_declare("", exclusive=True).method.queue for _ in range(2)]
        inboxes = [Inbox(channel, queue, auto_ack=False) for queue in queues]
        for number in range(3):
            for queue in queues:
                channel.basic_publish("", queue, str(number))
        for inbox, count in zip(inboxes, outstanding, strict=True):
            inbox.wait(count)
        ready = [ready_count(channel, queue) for queue in queues]
        assert ready == [3 - count for count in outstanding]


def test_a_global_prefetch_can_be_raised_under_a_running_consumer(
    channel: BlockingChannel, queue: str
) -> None:
    """Celery does this for every task with an ETA."""
    channel.confirm_delivery()
    bodies = publish_numbers(channel, queue, 1, 6)
    channel.basic_qos(prefetch_count=1, global_qos=True)
    inbox = Inbox(channel, queue, auto_ack=False)
    for count in (1, 2, 5):
        channel.basic_qos(prefetch_count=count, global_qos=True)
        assert inbox.wait_bodies(count) == bodies[:count]
        assert ready_count(channel, queue) == 6 - count


def test_without_acks_prefetch_does_not_count(channel: BlockingChannel, queue: str) -> None:
    channel.basic_qos(prefetch_count=1)
    inbox = Inbox(channel, queue, auto_ack=True)
    bodies = publish_numbers(channel, queue, 1, 50)
    assert inbox.wait_bodies(50) == bodies


def test_requeued_messages_return_to_their_places(channel: BlockingChannel, queue: str) -> None:
    publish_numbers(channel, queue, 1, 6)
    got = [get(channel, queue, auto_ack=False) for _ in range(5)]
    channel.basic_nack(got[3].method.delivery_tag, requeue=True)
    channel.basic_reject(got[1].method.delivery_tag, requeue=True)
    again = [get(channel, queue) for _ in range(3)]
    assert [(one.body, one.method.redelivered) for one in again] == [
        (b"2", True),
        (b"4", True),
        (b"6", False),
    ]


def test_nack_multiple_takes_all_up_to_the_tag(channel: BlockingChannel, queue: str) -> None:
    publish_numbers(channel, queue, 1, 5)
    for _ in range(5):
        get(channel, queue, auto_ack=False)
    channel.basic_nack(3, multiple=True, requeue=True)
    wait_ready(channel, queue, 3)
    channel.basic_nack(0, multiple=True, requeue=False)
    assert get_bodies(channel, queue, 3) == [b"1", b"2", b"3"]


def test_rejected_without_requeue_is_gone(channel: BlockingChannel, queue: str) -> None:
    publish_numbers(channel, queue, 1, 2)
    channel.basic_reject(get(channel, queue, auto_ack=False).method.delivery_tag, requeue=False)
    assert get_bodies(channel, queue, 1) == [b"2"]


@pytest.mark.parametrize("end", ["channel", "connection"])
def test_what_was_not_acked_returns_when_the_consumer_goes(
    connect: Connect, channel: BlockingChannel, end: str
) -> None:
    queue = channel.queue_declare("", auto_delete=False).method.queue
    publish_numbers(channel, queue, 1, 4)
    leaving = connect()
    leaver = leaving.channel()
    inbox = Inbox(leaver, queue, auto_ack=False)
    inbox.wait(4)
    leaver.basic_ack(2)
    (leaver if end == "channel" else leaving).close()
    wait_ready(channel, queue, 3)
    again = [get(channel, queue) for _ in range(3)]
    assert [(one.body, one.method.redelivered) for one in again] == [
        (b"1", True),
        (b"3", True),
        (b"4", True),
    ]
    channel.queue_delete(queue)


def test_recover_delivers_again_in_order(channel: BlockingChannel, queue: str) -> None:
    publish_numbers(channel, queue, 1, 4)
    inbox = Inbox(channel, queue, auto_ack=False)
    inbox.wait(4)
    channel.basic_ack(3)
    channel.basic_recover(requeue=True)
    seen = [
        (delivery.method.delivery_tag, delivery.body, delivery.method.redelivered)
        for delivery in inbox.wait(7)[4:]
    ]
    assert seen == [(5, b"1", True), (6, b"2", True), (7, b"4", True)]


@pytest.mark.warren_only("RabbitMQ answers recover without requeue with 540")
def test_recover_without_requeue_stays_with_the_consumer(
    channel: BlockingChannel, queue: str
) -> None:
    publish_numbers(channel, queue, 1, 2)
    inbox = Inbox(channel, queue, auto_ack=False)
    inbox.wait(2)
    channel.basic_recover(requeue=False)
    assert [(one.body, one.method.redelivered) for one in inbox.wait(4)[2:]] == [
        (b"1", True),
        (b"2", True),
    ]


@pytest.mark.parametrize("method", ["basic_ack", "basic_nack", "basic_reject"])
def test_unknown_and_repeated_tags_are_refused(
    connection: pika.BlockingConnection, method: str
) -> None:
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    publish_numbers(channel, queue, 1, 1)
    get(channel, queue, auto_ack=False)
    for settle, tag in ((channel, 1), (connection.channel(), 7)):
        if settle is channel:
            settle.basic_ack(1)
        with channel_closed(406, f"PRECONDITION_FAILED - unknown delivery tag {tag}"):
            getattr(settle, method)(tag)
            settle.queue_declare("", exclusive=True)


def test_ten_consumers_get_ten_each_of_a_hundred(connect: Connect) -> None:
    publisher = connect().channel()
    queue = publisher.queue_declare("", auto_delete=True).method.queue
    connection = connect()
    inboxes = []
    for _ in range(10):
        channel = connection.channel()
        channel.basic_qos(prefetch_count=100)
        inboxes.append(Inbox(channel, queue, auto_ack=False))
    bodies = publish_numbers(publisher, queue, 1, 100)
    pump(connection, lambda: sum(len(inbox.bodies) for inbox in inboxes) == 100, "100 deliveries")
    assert [len(inbox.bodies) for inbox in inboxes] == [10] * 10
    together = [body for inbox in inboxes for body in inbox.bodies]
    assert sorted(together, key=int) == bodies
    assert all(inbox.bodies == sorted(inbox.bodies, key=int) for inbox in inboxes)


def test_the_higher_priority_first_while_it_can_take_more(
    connection: pika.BlockingConnection, channel: BlockingChannel, queue: str
) -> None:
    low_channel, high_channel = connection.channel(), connection.channel()
    low = Inbox(low_channel, queue, auto_ack=False)
    high_channel.basic_qos(prefetch_count=2)
    high = Inbox(high_channel, queue, auto_ack=False, arguments={"x-priority": 10})
    publish_numbers(channel, queue, 1, 5)
    assert high.wait_bodies(2) == [b"1", b"2"]
    assert low.wait_bodies(3) == [b"3", b"4", b"5"]
    high_channel.basic_ack(1)
    high_channel.queue_declare(queue, passive=True)
    publish_numbers(channel, queue, 6, 7)
    assert high.wait_bodies(3) == [b"1", b"2", b"6"]
    assert low.wait_bodies(4) == [b"3", b"4", b"5", b"7"]


def test_an_exclusive_consumer_has_the_queue_alone(
    connection: pika.BlockingConnection, queue: str
) -> None:
    first = connection.channel()
    inbox = Inbox(first, queue, exclusive=True)
    text = f"ACCESS_REFUSED - queue '{queue}' in vhost '/' in exclusive use"
    with channel_closed(403, text):
        Inbox(connection.channel(), queue)
    first.basic_cancel(inbox.tag)
    with channel_closed(403, text):
        second = connection.channel()
        Inbox(second, queue)
        Inbox(second, queue, exclusive=True)


def test_a_cancelled_consumer_gets_no_more_but_may_still_ack(
    channel: BlockingChannel, queue: str
) -> None:
    publish_numbers(channel, queue, 1, 2)
    inbox = Inbox(channel, queue, auto_ack=False)
    inbox.wait(2)
    channel.basic_cancel(inbox.tag)
    publish_numbers(channel, queue, 3, 3)
    channel.basic_ack(1)
    channel.basic_nack(2, requeue=True)
    assert get_bodies(channel, queue, 2) == [b"2", b"3"]
    assert inbox.bodies == [b"1", b"2"]


def test_consumers_hear_of_the_end_of_their_queue(connect: Connect) -> None:
    connection, other = connect(), connect().channel()
    channel = connection.channel()
    queue = channel.queue_declare("").method.queue
    cancelled: list[str] = []
    channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
    tags = [Inbox(channel, queue, consumer_tag=f"consumer {number}").tag for number in range(3)]
    other.queue_delete(queue)
    pump(connection, lambda: len(cancelled) == 3, "three cancellations")
    assert sorted(cancelled) == tags
    assert channel.queue_declare("", exclusive=True).method.message_count == 0


def test_consuming_an_absent_queue(channel: BlockingChannel) -> None:
    with channel_closed(404, "NOT_FOUND - no queue 'no.queue' in vhost '/'"):
        channel.basic_consume("no.queue", lambda *_: None)


def test_a_prefetch_in_bytes_is_refused(connection: pika.BlockingConnection) -> None:
    with prefetch_in_bytes_refused():
        connection.channel().basic_qos(prefetch_size=1)
