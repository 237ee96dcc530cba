"""amqp.md section 5: x-max-priority, higher first, clipped, absent = 0."""

from __future__ import annotations

import pytest

from .raw import Channel


def declare(channel: Channel, name: str, highest: int = 5, **arguments: object) -> None:
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    channel.declare(name, arguments={"x-max-priority": highest} | given)


def put(channel: Channel, queue: str, *messages: tuple[bytes, int | None]) -> None:
    for body, priority in messages:
        properties = {} if priority is None else {"priority": priority}
        channel.publish(body, properties, routing_key=queue)
    channel.ready(queue)


def test_higher_first(channel: Channel, name: str) -> None:
    declare(channel, name)
    put(
        channel,
        name,
        *((b"%d%c" % (level, letter), level) for letter in b"ab" for level in (1, 5, 0, 3)),
    )
    assert channel.drain(name) == [b"5a", b"5b", b"3a", b"3b", b"1a", b"1b", b"0a", b"0b"]


def test_missing_priority_counts_as_the_lowest(channel: Channel, name: str) -> None:
    declare(channel, name)
    put(channel, name, (b"none", None), (b"zero", 0), (b"one", 1), (b"none again", None))
    assert channel.drain(name) == [b"one", b"none", b"zero", b"none again"]


def test_priority_above_the_maximum_counts_as_the_maximum(channel: Channel, name: str) -> None:
    declare(channel, name, 2)
    put(channel, name, (b"2", 2), (b"255", 255), (b"3", 3), (b"1", 1))
    taken = [channel.taken(name) for _ in range(4)]
    assert [message.body for message in taken] == [b"2", b"255", b"3", b"1"]
    assert [message.properties.priority for message in taken] == [2, 255, 3, 1]


@pytest.mark.parametrize("highest", [0, 1, 10, 255])
def test_maximum_priority_is_0_to_255(channel: Channel, name: str, highest: int) -> None:
    declare(channel, name, highest)
    put(channel, name, (b"low", 0), (b"high", highest))
    expected = [b"high", b"low"] if highest else [b"low", b"high"]
    assert channel.drain(name) == expected


def test_each_credit_goes_to_the_highest_priority(channel: Channel, name: str) -> None:
    declare(channel, name)
    channel.call("Basic.Qos", prefetch_count=1)
    put(channel, name, (b"first", 0), (b"second", 0))
    channel.consume(name)
    assert channel.content().body == b"first"
    put(channel, name, (b"urgent", 5))
    channel.send("Basic.Ack", delivery_tag=1)
    assert channel.content().body == b"urgent"
    channel.send("Basic.Ack", delivery_tag=2)
    assert channel.content().body == b"second"


def test_counts_include_all_priorities(channel: Channel, name: str) -> None:
    declare(channel, name)
    put(channel, name, (b"a", 0), (b"b", 3), (b"c", 5))
    assert channel.taken(name).method.message_count == 2
    assert channel.ready(name) == 2
    assert channel.call("Queue.Purge", queue=name).message_count == 2
    assert channel.ready(name) == 0
    put(channel, name, (b"d", 4))
    assert channel.call("Queue.Delete", queue=name).message_count == 1


@pytest.mark.differs("expires messages only at the head of each priority")
def test_messages_of_every_priority_expire_on_time(channel: Channel, name: str) -> None:
    dead = f"{name}.dead"
    channel.declare(dead)
    declare(channel, name, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel.publish(b"stays", {"priority": 5}, routing_key=name)
    channel.publish(b"goes", {"priority": 1, "expiration": "20"}, routing_key=name)
    channel.publish(b"stays too", {"priority": 1}, routing_key=name)
    channel.consume(dead, no_ack=True)
    assert channel.content().body == b"goes"
    assert channel.drain(name) == [b"stays", b"stays too"]


def test_consumer_priority_is_independent_of_message_priority(channel: Channel, name: str) -> None:
    declare(channel, name)
    low = channel.consume(name, no_ack=True, arguments={"x-priority": 1})
    high = channel.consume(name, no_ack=True, arguments={"x-priority": 2})
    assert low != high
    put_now = [(b"0", 0), (b"5", 5)]
    for body, priority in put_now:
        channel.publish(body, {"priority": priority}, routing_key=name)
    assert [channel.content().method.consumer_tag for _ in put_now] == [high, high]
