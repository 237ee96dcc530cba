"""amqp.md section 6: single active consumer - the first registered, then the next."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .raw import Channel, Client

Connect = Callable[..., Client]
SINGLE = {"x-single-active-consumer": True}


def publish(channel: Channel, queue: str, *bodies: bytes) -> None:
    for body in bodies:
        channel.publish(body, routing_key=queue)


def test_the_first_consumer_gets_all(channel: Channel, other: Channel, name: str) -> None:
    channel.declare(name, arguments=SINGLE)
    channel.consume(name, no_ack=True)
    other.consume(name, no_ack=True)
    bodies = [b"%d" % number for number in range(20)]
    publish(other, name, *bodies)
    assert channel.bodies(20) == bodies


@pytest.mark.parametrize("end", ["cancel", "channel", "error", "connection"])
def test_the_next_consumer_takes_over(
    connect: Connect, channel: Channel, name: str, end: str
) -> None:
    first, second, third = (connect().channel() for _ in range(3))
    channel.declare(name, arguments=SINGLE)
    for consumer in (first, second, third):
        consumer.consume(name, no_ack=True, consumer_tag="tag")
    publish(channel, name, b"a")
    assert first.content().body == b"a"
    _leave(first, end)
    publish(channel, name, b"b", b"c")
    assert second.bodies(2) == [b"b", b"c"]
    _leave(second, end)
    publish(channel, name, b"d")
    assert third.content().body == b"d"


def _leave(channel: Channel, end: str) -> None:
    match end:
        case "cancel":
            channel.call("Basic.Cancel", consumer_tag="tag")
        case "channel":
            channel.close()
        case "error":
            channel.send("Basic.Get", queue="absent")
            channel.refused(404)
        case _:
            channel.client.close()


def test_a_waiting_consumer_may_leave(connect: Connect, channel: Channel, name: str) -> None:
    first, second, third = (connect().channel() for _ in range(3))
    channel.declare(name, arguments=SINGLE)
    for consumer in (first, second, third):
        consumer.consume(name, no_ack=True)
    second.close()
    first.close()
    publish(channel, name, b"a")
    assert third.content().body == b"a"
    assert channel.declare(name, arguments=SINGLE).consumer_count == 1


@pytest.mark.differs("hands on what waits only when something else happens in the queue")
def test_ready_messages_go_to_the_next_consumer(
    channel: Channel, other: Channel, name: str
) -> None:
    channel.declare(name, arguments=SINGLE)
    channel.call("Basic.Qos", prefetch_count=1)
    tag = channel.consume(name)
    other.consume(name)
    publish(channel, name, b"a", b"b")
    assert channel.content().body == b"a"
    assert channel.ready(name) == 1
    channel.call("Basic.Cancel", consumer_tag=tag)
    assert other.content().body == b"b"
    channel.send("Basic.Nack", delivery_tag=1, requeue=True)
    message = other.content()
    assert (message.body, message.method.redelivered) == (b"a", True)


def test_requeued_messages_come_first_after_the_change(
    channel: Channel, other: Channel, name: str
) -> None:
    channel.declare(name, arguments=SINGLE)
    channel.call("Basic.Qos", prefetch_count=3)
    channel.consume(name)
    other.consume(name)
    publish(channel, name, *(b"%d" % number for number in range(6)))
    assert channel.bodies(3) == [b"0", b"1", b"2"]
    channel.send("Basic.Ack", delivery_tag=1)
    assert channel.bodies(1) == [b"3"]
    channel.close()
    assert other.bodies(5) == [b"1", b"2", b"3", b"4", b"5"]


def test_a_new_consumer_with_a_priority_waits(channel: Channel, other: Channel, name: str) -> None:
    """RabbitMQ #14141: deliveries stopped when a second consumer with a higher priority came."""
    channel.declare(name, arguments=SINGLE)
    channel.consume(name, no_ack=True)
    other.consume(name, no_ack=True, arguments={"x-priority": 100})
    publish(channel, name, b"a", b"b")
    assert channel.bodies(2) == [b"a", b"b"]


def test_get_is_not_restricted(channel: Channel, other: Channel, name: str) -> None:
    channel.declare(name, arguments=SINGLE)
    channel.call("Basic.Qos", prefetch_count=1)
    channel.consume(name)
    publish(channel, name, b"a", b"b")
    channel.content()
    assert other.taken(name).body == b"b"


@pytest.mark.parametrize(
    ("of_queue", "of_consumer"), [({"x-single-active-consumer": False}, {}), ({}, SINGLE)]
)
def test_consumers_share_without_the_argument_of_the_queue(
    channel: Channel, name: str, of_queue: dict[str, bool], of_consumer: dict[str, bool]
) -> None:
    channel.declare(name, arguments=of_queue)
    tags = {channel.consume(name, no_ack=True, arguments=of_consumer) for _ in range(2)}
    publish(channel, name, b"a", b"b")
    assert {channel.content().method.consumer_tag for _ in range(2)} == tags


def test_exclusive_consumer_is_refused(channel: Channel, name: str) -> None:
    channel.declare(name, arguments=SINGLE)
    channel.send("Basic.Consume", queue=name, exclusive=True)
    text = f"ACCESS_REFUSED - queue '{name}' in vhost '/' in exclusive use"
    channel.refused(403, text, "Basic.Consume")
