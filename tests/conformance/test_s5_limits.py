"""amqp.md section 5: what ends a message or a queue by itself - time and length.

No test measures time: a message that expires shows in a dead letter queue, a queue that expires
in a message that is returned.
"""

from __future__ import annotations

from typing import Any

import pytest

from .raw import Channel

Fields = dict[str, Any]
FAR_MS = 3_600_000


def queue_with_graveyard(channel: Channel, name: str, **arguments: object) -> str:
    """Declares `name` and gives the queue where its dead letters go."""
    dead = f"{name}.dead"
    channel.declare(dead)
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    channel.declare(name, arguments=given | letters)
    return dead


# Time to live


def test_queue_ttl(channel: Channel, name: str) -> None:
    dead = queue_with_graveyard(channel, name, x_message_ttl=50)
    channel.put(name, b"a", b"b")
    channel.consume(dead, no_ack=True)
    assert channel.bodies(2) == [b"a", b"b"]
    assert channel.get(name) is None


def test_message_ttl(channel: Channel, name: str) -> None:
    dead = queue_with_graveyard(channel, name)
    channel.publish(b"short", {"expiration": "50"}, routing_key=name)
    channel.publish(b"long", {"expiration": str(FAR_MS)}, routing_key=name)
    channel.consume(dead, no_ack=True)
    assert channel.content().body == b"short"
    assert channel.drain(name) == [b"long"]


@pytest.mark.parametrize(("queue_ms", "message_ms"), [(50, FAR_MS), (FAR_MS, 50)])
def test_the_shorter_ttl_counts(
    channel: Channel, name: str, queue_ms: int, message_ms: int
) -> None:
    dead = queue_with_graveyard(channel, name, x_message_ttl=queue_ms)
    channel.consume(dead, no_ack=True)
    channel.publish(b"a", {"expiration": str(message_ms)}, routing_key=name)
    assert channel.content().body == b"a"


@pytest.mark.differs("expires at the head of the queue only")
def test_expires_behind_others(channel: Channel, name: str) -> None:
    dead = queue_with_graveyard(channel, name)
    channel.consume(dead, no_ack=True)
    channel.publish(b"first", routing_key=name)
    channel.publish(b"second", {"expiration": "50"}, routing_key=name)
    assert channel.content().body == b"second"
    assert channel.drain(name) == [b"first"]


def test_expires_in_time_after_a_requeue(channel: Channel, name: str) -> None:
    dead = queue_with_graveyard(channel, name, x_message_ttl=50)
    channel.put(name, b"a")
    channel.consume(dead, no_ack=True)
    if message := channel.get(name, no_ack=False):
        channel.send("Basic.Nack", delivery_tag=message.method.delivery_tag, requeue=True)
    assert channel.content().body == b"a"


def test_unacked_do_not_expire(channel: Channel, name: str) -> None:
    """The clock is a second message, whose time is up later."""
    dead = queue_with_graveyard(channel, name, x_message_ttl=300)
    channel.put(name, b"held")
    held = channel.taken(name, no_ack=False)
    channel.consume(dead, no_ack=True)
    channel.put(name, b"clock")
    assert channel.content().body == b"clock"
    channel.send("Basic.Nack", delivery_tag=held.method.delivery_tag, requeue=True)
    assert channel.content().body == b"held"


def test_ttl_zero_waits_for_nobody(channel: Channel, name: str) -> None:
    dead = queue_with_graveyard(channel, name)
    channel.consume(dead, no_ack=True)
    channel.publish(b"a", {"expiration": "0"}, routing_key=name)
    assert channel.content().body == b"a"


def test_ttl_zero_reaches_a_ready_consumer(channel: Channel, name: str) -> None:
    channel.declare(name, arguments={"x-message-ttl": 0})
    channel.consume(name, no_ack=True)
    channel.publish(b"a", routing_key=name)
    assert channel.content().body == b"a"


@pytest.mark.parametrize("expiration", ["abc", "-1", "1.5", "", "5 ", "1" * 30])
def test_invalid_expiration(channel: Channel, name: str, expiration: str) -> None:
    channel.declare(name)
    channel.publish(b"a", {"expiration": expiration}, routing_key=name)
    text = channel.refused(406, culprit="Basic.Publish")
    assert text.startswith(f"PRECONDITION_FAILED - invalid expiration '{expiration}'")
    channel.open()
    assert channel.ready(name) == 0


# Expiry of queues


def _wait_until_gone(channel: Channel, name: str) -> None:
    """By publishing, which does not count as use; bounded by the client's read limit."""
    for _ in range(100_000):
        channel.publish(b"anyone?", routing_key=name, mandatory=True)
        channel.send("Basic.Qos")
        method = channel.client.receive(channel.number)
        if method.name == "Basic.QosOk":
            continue
        channel.client.receive(channel.number)
        channel.client.receive(channel.number)
        channel.expect("Basic.QosOk")
        return
    raise AssertionError(f"queue {name} is still there")


def test_idle_queue_expires(channel: Channel, name: str) -> None:
    channel.declare(name, arguments={"x-expires": 100})
    _wait_until_gone(channel, name)


def test_consumed_queue_does_not_expire(channel: Channel, name: str) -> None:
    """Another queue with the same time is the clock."""
    channel.declare(name, arguments={"x-expires": 100})
    tag = channel.consume(name, no_ack=True)
    channel.declare(f"{name}.clock", arguments={"x-expires": 100})
    _wait_until_gone(channel, f"{name}.clock")
    channel.ready(name)
    channel.call("Basic.Cancel", consumer_tag=tag)
    _wait_until_gone(channel, name)


# Length


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ({"x-max-length": 2}, [b"333", b"4444"]),
        ({"x-max-length": 0}, []),
        ({"x-max-length-bytes": 7}, [b"333", b"4444"]),
        ({"x-max-length-bytes": 6}, [b"4444"]),
        ({"x-max-length": 3, "x-max-length-bytes": 7}, [b"333", b"4444"]),
        ({"x-max-length": 2, "x-overflow": "drop-head"}, [b"333", b"4444"]),
    ],
)
def test_overflow_drops_the_head(
    channel: Channel, name: str, arguments: Fields, left: list[bytes]
) -> None:
    channel.declare(name, arguments=arguments)
    channel.put(name, b"1", b"22", b"333", b"4444")
    assert channel.drain(name) == left


def test_only_ready_messages_count(channel: Channel, name: str) -> None:
    channel.declare(name, arguments={"x-max-length": 1})
    channel.put(name, b"held")
    channel.taken(name, no_ack=False)
    channel.put(name, b"a", b"b")
    assert channel.drain(name) == [b"b"]


def test_overflow_reject_publish(channel: Channel, name: str) -> None:
    channel.declare(name, arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    channel.put(name, b"a", b"b", b"c")
    assert channel.drain(name) == [b"a", b"b"]


def test_overflow_dead_letters_the_head(channel: Channel, other: Channel, name: str) -> None:
    other.consume(queue_with_graveyard(channel, name, x_max_length=1), no_ack=True)
    channel.put(name, b"a", b"b", b"c")
    assert other.bodies(2) == [b"a", b"b"]


def test_overflow_reject_publish_dead_letters_the_new(
    channel: Channel, other: Channel, name: str
) -> None:
    dead = queue_with_graveyard(channel, name, x_max_length=1, x_overflow="reject-publish-dlx")
    other.consume(dead, no_ack=True)
    channel.put(name, b"a", b"b")
    assert other.content().body == b"b"
    assert channel.drain(name) == [b"a"]
