"""amqp.md section 5: x-max-priority, higher first, clipped, absent = 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .raw import Channel, Client

Fields = dict[str, Any]
Connect = Callable[..., Client]


def declare(channel: Channel, name: str, highest: int = 5, **arguments: object) -> None:
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    channel.declare(name, arguments={"x-max-priority": highest} | given)


def put(channel: Channel, queue: str, *messages: tuple[bytes, int | None]) -> None:
    for body, priority in messages:
        properties = {} if priority is None else {"priority": priority}
        channel.publish(body, properties, routing_key=queue)
    channel.ready(queue)


def test_higher_first(channel: Channel, name: str) -> None:
    """Among equals, in the order of their publishing."""
    declare(channel, name)
    put(
        channel,
        name,
        *((b"%d%c" % (level, letter), level) for letter in b"ab" for level in (1, 5, 0, 3)),
    )
    assert channel.drain(name) == [b"5a", b"5b", b"3a", b"3b", b"1a", b"1b", b"0a", b"0b"]


def test_no_priority_is_the_lowest(channel: Channel, name: str) -> None:
    declare(channel, name)
    put(channel, name, (b"none", None), (b"zero", 0), (b"one", 1), (b"none again", None))
    assert channel.drain(name) == [b"one", b"none", b"zero", b"none again"]


def test_above_the_highest_is_the_highest(channel: Channel, name: str) -> None:
    """The message keeps the number that it was published with."""
    declare(channel, name, 2)
    put(channel, name, (b"2", 2), (b"255", 255), (b"3", 3), (b"1", 1))
    taken = [channel.taken(name) for _ in range(4)]
    assert [message.body for message in taken] == [b"2", b"255", b"3", b"1"]
    assert [message.properties.priority for message in taken] == [2, 255, 3, 1]


@pytest.mark.parametrize("highest", [0, 1, 10, 255])
def test_highest_that_can_be_asked_for(channel: Channel, name: str, highest: int) -> None:
    declare(channel, name, highest)
    put(channel, name, (b"low", 0), (b"high", highest))
    expected = [b"high", b"low"] if highest else [b"low", b"high"]
    assert channel.drain(name) == expected


def test_without_the_argument_priorities_mean_nothing(channel: Channel, name: str) -> None:
    channel.declare(name)
    put(channel, name, (b"low", 0), (b"high", 9))
    assert channel.drain(name) == [b"low", b"high"]


def test_each_place_in_the_prefetch_goes_to_the_highest(channel: Channel, name: str) -> None:
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


def test_requeued_at_its_place_among_equals(channel: Channel, other: Channel, name: str) -> None:
    declare(channel, name)
    put(channel, name, (b"5a", 5), (b"5b", 5), (b"1a", 1), (b"1b", 1))
    for _ in range(3):
        channel.taken(name, no_ack=False)
    put(other, name, (b"5c", 5), (b"3", 3))
    channel.close()
    messages = [other.taken(name) for _ in range(6)]
    assert [message.body for message in messages] == [b"5a", b"5b", b"5c", b"3", b"1a", b"1b"]
    flags = [message.method.redelivered for message in messages]
    assert flags == [True, True, False, False, True, False]


def test_counts_are_of_all_priorities(channel: Channel, name: str) -> None:
    declare(channel, name)
    put(channel, name, (b"a", 0), (b"b", 3), (b"c", 5))
    assert channel.taken(name).method.message_count == 2
    assert channel.ready(name) == 2
    assert channel.call("Queue.Purge", queue=name).message_count == 2
    assert channel.ready(name) == 0
    put(channel, name, (b"d", 4))
    assert channel.call("Queue.Delete", queue=name).message_count == 1


@pytest.mark.differs("expires messages only at the head of each priority")
def test_time_passes_for_all_priorities(channel: Channel, name: str) -> None:
    """Nothing expired is kept because something else goes first."""
    dead = f"{name}.dead"
    channel.declare(dead)
    declare(channel, name, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel.publish(b"stays", {"priority": 5}, routing_key=name)
    channel.publish(b"goes", {"priority": 1, "expiration": "20"}, routing_key=name)
    channel.publish(b"stays too", {"priority": 1}, routing_key=name)
    channel.consume(dead, no_ack=True)
    assert channel.content().body == b"goes"
    assert channel.drain(name) == [b"stays", b"stays too"]


def test_dead_letters_keep_their_priority(channel: Channel, name: str) -> None:
    declare(channel, f"{name}.dead")
    channel.declare(
        name,
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}.dead"},
    )
    put(channel, name, (b"low", 1), (b"high", 4))
    for _ in range(2):
        channel.taken(name, no_ack=False)
    channel.send("Basic.Nack", delivery_tag=2, multiple=True)
    channel.call("Basic.Qos")
    channel.consume(f"{name}.dead")
    taken = [channel.content() for _ in range(2)]
    assert {(message.body, message.properties.priority) for message in taken} == {
        (b"low", 1), (b"high", 4),
    }  # fmt: skip


def test_consumer_and_message_priorities_are_two_things(channel: Channel, name: str) -> None:
    declare(channel, name)
    low = channel.consume(name, no_ack=True, arguments={"x-priority": 1})
    high = channel.consume(name, no_ack=True, arguments={"x-priority": 2})
    assert low != high
    put_now = [(b"0", 0), (b"5", 5)]
    for body, priority in put_now:
        channel.publish(body, {"priority": priority}, routing_key=name)
    assert [channel.content().method.consumer_tag for _ in put_now] == [high, high]


@pytest.mark.parametrize("again", [{}, {"x-max-priority": 6}])
def test_another_highest_is_another_queue(channel: Channel, name: str, again: Fields) -> None:
    declare(channel, name, 5)
    channel.send("Queue.Declare", queue=name, arguments=again)
    text = f"inequivalent arg 'x-max-priority' for queue '{name}' in vhost '/'"
    assert text in channel.refused(406, culprit="Queue.Declare")
