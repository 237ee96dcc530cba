"""amqp.md section 5: limits of time and length.

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
    """Declares `name`; returns the queue of its dead letters."""
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


@pytest.mark.parametrize(("queue_ms", "message_ms"), [(50, FAR_MS), (FAR_MS, 50)])
def test_shorter_of_queue_and_message_ttl_applies(
    channel: Channel, name: str, queue_ms: int, message_ms: int
) -> None:
    dead = queue_with_graveyard(channel, name, x_message_ttl=queue_ms)
    channel.consume(dead, no_ack=True)
    channel.publish(b"a", {"expiration": str(message_ms)}, routing_key=name)
    assert channel.content().body == b"a"


@pytest.mark.differs("expires at the head of the queue only")
def test_message_expires_behind_unexpired_ones(channel: Channel, name: str) -> None:
    dead = queue_with_graveyard(channel, name)
    channel.consume(dead, no_ack=True)
    channel.publish(b"first", routing_key=name)
    channel.publish(b"second", {"expiration": "50"}, routing_key=name)
    assert channel.content().body == b"second"
    assert channel.drain(name) == [b"first"]


def test_requeued_message_expires_on_time(channel: Channel, name: str) -> None:
    dead = queue_with_graveyard(channel, name, x_message_ttl=50)
    channel.put(name, b"a")
    channel.consume(dead, no_ack=True)
    if message := channel.get(name, no_ack=False):
        channel.send("Basic.Nack", delivery_tag=message.method.delivery_tag, requeue=True)
    assert channel.content().body == b"a"


def test_unacked_messages_do_not_expire(channel: Channel, name: str) -> None:
    dead = queue_with_graveyard(channel, name, x_message_ttl=300)
    channel.put(name, b"held")
    held = channel.taken(name, no_ack=False)
    channel.consume(dead, no_ack=True)
    channel.put(name, b"clock")
    assert channel.content().body == b"clock"
    channel.send("Basic.Nack", delivery_tag=held.method.delivery_tag, requeue=True)
    assert channel.content().body == b"held"


def test_ttl_zero_reaches_a_ready_consumer(channel: Channel, name: str) -> None:
    channel.declare(name, arguments={"x-message-ttl": 0})
    channel.consume(name, no_ack=True)
    channel.publish(b"a", routing_key=name)
    assert channel.content().body == b"a"


@pytest.mark.parametrize(
    "expiration", ["abc", "-1", "1.5", "", "5 ", " 5", "٣", "²", "315360000001", "1" * 30]
)
def test_invalid_expiration(channel: Channel, name: str, expiration: str) -> None:
    channel.declare(name)
    channel.publish(b"a", {"expiration": expiration}, routing_key=name)
    text = channel.refused(406, culprit="Basic.Publish")
    assert text.startswith("PRECONDITION_FAILED - invalid expiration '")
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


OVERFLOWS = ("drop-head", "reject-publish", "reject-publish-dlx")


def answers(channel: Channel, name: str, *bodies: bytes) -> list[str]:
    """What a publisher that waits for each answer is told."""
    told = []
    for body in bodies:
        channel.publish(body, routing_key=name)
        told.append(channel.client.receive(channel.number).name.removeprefix("Basic."))
    return told


@pytest.mark.parametrize("limit", [{"x-max-length": 2}, {"x-max-length-bytes": 7}])
@pytest.mark.parametrize("overflow", OVERFLOWS)
def test_overflow_drops_or_rejects_as_declared(
    channel: Channel, other: Channel, name: str, overflow: str, limit: Fields
) -> None:
    dead = f"{name}.dead"
    other.declare(dead)
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    channel.declare(name, arguments=limit | letters | {"x-overflow": overflow})
    channel.call("Confirm.Select")
    told = answers(channel, name, b"333", b"4444", b"55555")
    channel.call("Confirm.Select")
    left = other.drain(name)
    if overflow == "drop-head":
        gone = [b"333"] if "x-max-length" in limit else [b"333", b"4444"]
        assert (told, left) == (["Ack"] * 3, [b"4444", b"55555"][len(gone) - 1 :])
    else:
        gone = [b"55555"] if overflow.endswith("dlx") else []
        assert (told, left) == (["Ack", "Ack", "Nack"], [b"333", b"4444"])
    channel.publish(b"last", routing_key=dead)
    channel.expect("Basic.Ack")
    assert other.drain(dead) == [*gone, b"last"]


@pytest.mark.parametrize("overflow", OVERFLOWS)
def test_only_bodies_count_as_bytes(channel: Channel, name: str, overflow: str) -> None:
    channel.declare(name, arguments={"x-max-length-bytes": 2, "x-overflow": overflow})
    for body in (b"a", b"b", b""):
        channel.publish(body, {"headers": {"h": "x" * 100}, "app_id": "y"}, routing_key=name)
    assert channel.drain(name) == [b"a", b"b", b""]


@pytest.mark.parametrize("overflow", OVERFLOWS)
def test_requeue_to_a_full_queue_drops_only_with_drop_head(
    channel: Channel, name: str, overflow: str
) -> None:
    channel.declare(name, arguments={"x-max-length": 1, "x-overflow": overflow})
    channel.put(name, b"held")
    held = channel.taken(name, no_ack=False)
    channel.put(name, b"next")
    channel.send("Basic.Nack", delivery_tag=held.method.delivery_tag, requeue=True)
    left = [b"next"] if overflow == "drop-head" else [b"held", b"next"]
    assert channel.drain(name) == left


@pytest.mark.parametrize("overflow", OVERFLOWS)
def test_ready_consumer_prevents_overflow(
    channel: Channel, other: Channel, name: str, overflow: str
) -> None:
    channel.declare(name, arguments={"x-max-length": 1, "x-overflow": overflow})
    other.consume(name, no_ack=True)
    channel.call("Confirm.Select")
    bodies = [b"%d" % number for number in range(20)]
    assert answers(channel, name, *bodies) == ["Ack"] * 20
    assert other.bodies(20) == bodies


# Time and consumers


def test_slow_consumer_gets_no_expired_message(channel: Channel, other: Channel, name: str) -> None:
    dead = queue_with_graveyard(channel, name, x_message_ttl=50)
    channel.call("Basic.Qos", prefetch_count=1)
    other.consume(dead, no_ack=True)
    channel.consume(name)
    for number in range(5):
        other.publish(b"%d" % number, routing_key=name)
    first = channel.content()
    assert other.bodies(4) == [b"1", b"2", b"3", b"4"]
    channel.send("Basic.Ack", delivery_tag=first.method.delivery_tag)
    other.publish(b"new", routing_key=name)
    assert channel.content().body == b"new"


@pytest.mark.differs("drops it, though somebody is ready")
def test_requeued_message_with_ttl_zero_reaches_a_ready_consumer(
    channel: Channel, name: str
) -> None:
    channel.declare(name, arguments={"x-message-ttl": 0})
    channel.consume(name)
    channel.publish(b"a", routing_key=name)
    for redelivered in (False, True, True):
        message = channel.content()
        assert (message.body, message.method.redelivered) == (b"a", redelivered)
        channel.send("Basic.Nack", delivery_tag=message.method.delivery_tag, requeue=True)


def test_requeued_message_with_ttl_zero_expires_without_a_ready_consumer(
    channel: Channel, other: Channel, name: str
) -> None:
    dead = queue_with_graveyard(channel, name, x_message_ttl=0)
    other.consume(dead, no_ack=True)
    tag = channel.consume(name)
    channel.publish(b"a", routing_key=name)
    held = channel.content()
    channel.call("Basic.Cancel", consumer_tag=tag)
    channel.send("Basic.Nack", delivery_tag=held.method.delivery_tag, requeue=True)
    assert other.content().body == b"a"
