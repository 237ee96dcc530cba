"""amqp.md section 5: quorum queues on a single node."""

from __future__ import annotations

from typing import Any

import pytest

from .raw import Channel

Fields = dict[str, Any]
QUORUM = {"x-queue-type": "quorum"}


def declare(channel: Channel, name: str, **arguments: object) -> None:
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    channel.declare(name, durable=True, arguments=QUORUM | given)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, "non-durable"),
        ({"durable": True, "exclusive": True}, "exclusive-owner"),
        ({"durable": True, "auto_delete": True}, "auto-delete"),
    ],
)
def test_property_that_it_can_not_have(
    channel: Channel, name: str, fields: Fields, wrong: str
) -> None:
    channel.send("Queue.Declare", queue=name, arguments=QUORUM, **fields)
    channel.refused(
        406,
        f"PRECONDITION_FAILED - invalid property '{wrong}' for queue '{name}' in vhost '/'",
        "Queue.Declare",
    )
    channel.open()
    channel.send("Queue.Declare", queue=name, passive=True)
    channel.refused(404)


def test_name_is_needed(channel: Channel) -> None:
    channel.send("Queue.Declare", queue="", durable=True, arguments=QUORUM)
    channel.refused(
        406,
        "PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_quorum_queue",
    )


def test_type_is_compared(channel: Channel, name: str) -> None:
    declare(channel, name)
    declare(channel, name)
    channel.send("Queue.Declare", queue=name, durable=True)
    text = channel.refused(406, culprit="Queue.Declare")
    assert f"inequivalent arg 'x-queue-type' for queue '{name}' in vhost '/'" in text
    channel.open()
    channel.call("Queue.Delete", queue=name)


@pytest.mark.parametrize("argument", ["x-max-priority", "x-max-age"])
def test_arguments_of_other_types(channel: Channel, name: str, argument: str) -> None:
    channel.send(
        "Queue.Declare", queue=name, durable=True,
        arguments=QUORUM | {argument: 5 if argument == "x-max-priority" else "1h"},
    )  # fmt: skip
    text = channel.refused(406)
    assert text.startswith(
        f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{name}' in vhost '/'"
    )


def test_publish_consume_ack(channel: Channel, name: str) -> None:
    declare(channel, name)
    channel.call("Confirm.Select")
    channel.call("Basic.Qos", prefetch_count=2)
    for body in (b"a", b"b", b"c"):
        channel.publish(body, routing_key=name)
        channel.expect("Basic.Ack")
    channel.consume(name)
    assert channel.bodies(2) == [b"a", b"b"]
    channel.send("Basic.Ack", delivery_tag=2, multiple=True)
    assert channel.bodies(1) == [b"c"]
    channel.send("Basic.Ack", delivery_tag=3)
    channel.close()
    channel.open()
    assert channel.drain(name) == []
    channel.call("Queue.Delete", queue=name)


@pytest.mark.differs("holds all 256 as no priority at all")
def test_priorities_without_asking(channel: Channel, name: str) -> None:
    """Up to 31, higher first, above that as 31."""
    declare(channel, name)
    for priority in (0, 31, 5, 255, 4, 30):
        channel.publish(b"%d" % priority, {"priority": priority}, routing_key=name)
    channel.publish(b"none", routing_key=name)
    channel.ready(name)
    assert channel.drain(name) == [b"31", b"255", b"30", b"5", b"4", b"0", b"none"]


def outcomes(channel: Channel, queue: str, count: int) -> list[str]:
    """Publishes one after the other; gives the name of what each was answered with."""
    names = []
    for number in range(count):
        channel.publish(b"%d" % number, routing_key=queue)
        names.append(channel.client.receive(channel.number).name)
    return names


def test_length_limit_drops_the_head(channel: Channel, name: str) -> None:
    declare(channel, name, x_max_length=2)
    channel.call("Confirm.Select")
    assert outcomes(channel, name, 3) == ["Basic.Ack"] * 3
    assert channel.drain(name) == [b"1", b"2"]


@pytest.mark.differs("lets some more in")
def test_length_limit_rejects_publishes(channel: Channel, name: str) -> None:
    declare(channel, name, x_max_length=2, x_overflow="reject-publish")
    channel.call("Confirm.Select")
    assert outcomes(channel, name, 3) == ["Basic.Ack", "Basic.Ack", "Basic.Nack"]
    assert channel.drain(name) == [b"0", b"1"]


def test_dead_letters(channel: Channel, name: str) -> None:
    channel.declare(f"{name}.dead")
    declare(channel, name, x_dead_letter_exchange="", x_dead_letter_routing_key=f"{name}.dead")
    channel.put(name, b"a")
    tag = channel.taken(name, no_ack=False).method.delivery_tag
    channel.send("Basic.Reject", delivery_tag=tag, requeue=False)
    channel.consume(f"{name}.dead", no_ack=True)
    headers: Any = channel.content().properties.headers
    (death,) = headers["x-death"]
    assert (death["queue"], death["reason"], death["count"]) == (name, "rejected", 1)


def test_single_active_consumer(channel: Channel, other: Channel, name: str) -> None:
    declare(channel, name, x_single_active_consumer=True)
    channel.consume(name)
    other.consume(name)
    for body in (b"a", b"b"):
        channel.publish(body, routing_key=name)
    assert channel.bodies(2) == [b"a", b"b"]
    channel.close()
    assert other.bodies(2) == [b"a", b"b"]


DELAY_MS = 200


@pytest.mark.differs("4.3 and later delay what comes back")
@pytest.mark.parametrize("kind", ["all", "failed"])
def test_delayed_retry(channel: Channel, name: str, kind: str) -> None:
    """What came back waits; what was published later goes first."""
    declare(
        channel, name, x_delayed_retry_type=kind, x_delayed_retry_min=DELAY_MS,
        x_delayed_retry_max=DELAY_MS,
    )  # fmt: skip
    channel.put(name, b"a")
    tag = channel.taken(name, no_ack=False).method.delivery_tag
    channel.send("Basic.Reject", delivery_tag=tag, requeue=True)
    channel.put(name, b"b")
    channel.consume(name)
    assert channel.bodies(2) == [b"b", b"a"]


@pytest.mark.differs("4.3 and later delay what comes back")
@pytest.mark.parametrize(
    "arguments",
    [
        {"x-delayed-retry-type": "sometimes"},
        {"x-delayed-retry-type": 5},
        {"x-delayed-retry-type": "all", "x-delayed-retry-min": -1},
        {"x-delayed-retry-type": "all", "x-delayed-retry-max": "1s"},
        {"x-delayed-retry-type": "all", "x-delayed-retry-min": 9, "x-delayed-retry-max": 8},
    ],
)
def test_delayed_retry_that_can_not_be(channel: Channel, name: str, arguments: Fields) -> None:
    channel.send("Queue.Declare", queue=name, durable=True, arguments=QUORUM | arguments)
    assert "invalid arg 'x-delayed-retry-" in channel.refused(406, culprit="Queue.Declare")


def test_global_prefetch_is_not_for_it(channel: Channel, name: str) -> None:
    declare(channel, name)
    channel.call("Basic.Qos", prefetch_count=5, global_=True)
    channel.send("Basic.Consume", queue=name)
    text = f"NOT_IMPLEMENTED - queue '{name}' in vhost '/' does not support global qos"
    channel.client.closed(540, text, culprit="Basic.Consume")
