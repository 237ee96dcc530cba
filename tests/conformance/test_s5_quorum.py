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


def test_redeclaration_as_another_type_is_refused(channel: Channel, name: str) -> None:
    declare(channel, name)
    declare(channel, name)
    channel.send("Queue.Declare", queue=name, durable=True)
    text = channel.refused(406, culprit="Queue.Declare")
    assert f"inequivalent arg 'x-queue-type' for queue '{name}' in vhost '/'" in text
    channel.open()
    channel.call("Queue.Delete", queue=name)


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
def test_priorities_need_no_argument(channel: Channel, name: str) -> None:
    declare(channel, name)
    for priority in (0, 31, 5, 255, 4, 30):
        channel.publish(b"%d" % priority, {"priority": priority}, routing_key=name)
    channel.publish(b"none", routing_key=name)
    channel.ready(name)
    assert channel.drain(name) == [b"31", b"255", b"30", b"5", b"4", b"0", b"none"]


DELAY_MS = 200


@pytest.mark.differs("4.3 and later delay what comes back")
@pytest.mark.parametrize("kind", ["all", "failed"])
def test_delayed_retry(channel: Channel, name: str, kind: str) -> None:
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
def test_the_longest_delay_is_not_below_the_shortest(channel: Channel, name: str) -> None:
    bounds = {"x-delayed-retry-min": 9, "x-delayed-retry-max": 8}
    arguments = QUORUM | {"x-delayed-retry-type": "all"} | bounds
    channel.send("Queue.Declare", queue=name, durable=True, arguments=arguments)
    assert "invalid arg 'x-delayed-retry-" in channel.refused(406, culprit="Queue.Declare")


def test_global_prefetch_is_refused(channel: Channel, name: str) -> None:
    declare(channel, name)
    channel.call("Basic.Qos", prefetch_count=5, global_=True)
    channel.send("Basic.Consume", queue=name)
    text = f"NOT_IMPLEMENTED - queue '{name}' in vhost '/' does not support global qos"
    channel.client.closed(540, text, culprit="Basic.Consume")
