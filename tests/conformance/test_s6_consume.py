"""amqp.md section 6: get, consume, cancel, and prefetch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.process import wait_until

from . import frames
from .raw import TIMEOUT_S, Channel, Client

Connect = Callable[..., Client]


# Get


def test_get_reports_remaining_messages(channel: Channel, name: str) -> None:
    channel.filled(name, 3)
    counts = [channel.taken(name, no_ack=no_ack).method.message_count for no_ack in (True, False)]
    assert counts == [2, 1]


def test_methods_after_a_get_wait_for_it(channel: Channel, name: str) -> None:
    channel.declare(name, durable=True)
    channel.declare(f"{name}.other")
    channel.put(name, b"a", b"b", b"c", properties={"delivery_mode": 2})
    channel.put(f"{name}.other", b"d")
    channel.client.send(
        b"".join(
            frames.frame(frames.METHOD, 1, frames.method(method, queue=queue))
            for method, queue in (
                ("Basic.Get", name), ("Basic.Get", f"{name}.other"), ("Basic.Get", name),
                ("Queue.Purge", name), ("Basic.Get", name),
            )
        )
    )  # fmt: skip
    got = [channel.content("Basic.GetOk") for _ in range(3)]
    assert [message.body for message in got] == [b"a", b"d", b"b"]
    assert [message.method.delivery_tag for message in got] == [1, 2, 3]
    assert channel.expect("Queue.PurgeOk").message_count == 1
    channel.expect("Basic.GetEmpty")


def test_get_ok_has_exchange_and_routing_key(channel: Channel, name: str) -> None:
    """Of messages that came together too."""
    channel.declare(name)
    channel.call("Queue.Bind", queue=name, exchange="amq.topic", routing_key=f"{name}.#")
    keys = [f"{name}.{letter}" for letter in "abc"]
    sent = (frames.publish_frames(1, exchange="amq.topic", routing_key=key) for key in keys)
    channel.client.send(b"".join(sent))
    got = [channel.taken(name).method for _ in keys]
    assert [(method.exchange, method.routing_key) for method in got] == [
        ("amq.topic", key) for key in keys
    ]


# Consume, cancel


def test_server_generates_consumer_tags(channel: Channel, name: str) -> None:
    channel.declare(name)
    tags = {channel.consume(name) for _ in range(3)}
    assert len(tags) == 3
    assert all(tag.startswith("amq.ctag-") for tag in tags)


def test_duplicate_consumer_tag_is_refused(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.consume(name, consumer_tag="mine")
    channel.send("Basic.Consume", queue=name, consumer_tag="mine")
    channel.client.closed(
        530, "NOT_ALLOWED - attempt to reuse consumer tag 'mine'", culprit="Basic.Consume"
    )


def test_consume_ok_precedes_deliveries(channel: Channel, name: str) -> None:
    bodies = channel.filled(name, 5)
    tag = channel.consume(name, no_ack=True)
    for number, body in enumerate(bodies, 1):
        message = channel.content()
        assert (message.body, message.method.delivery_tag) == (body, number)
        assert (message.method.consumer_tag, message.method.redelivered) == (tag, False)


def test_consume_nowait(channel: Channel, name: str) -> None:
    channel.filled(name, 1)
    channel.send("Basic.Consume", queue=name, consumer_tag="mine", nowait=True, no_ack=True)
    assert channel.content().method.consumer_tag == "mine"
    channel.send("Basic.Cancel", consumer_tag="mine", nowait=True)
    assert channel.declare(name).consumer_count == 0


def test_own_messages_are_delivered_with_no_local(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.consume(name, no_ack=True, no_local=True)
    channel.publish(b"own", routing_key=name)
    assert channel.content().body == b"own"


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), (True, True)])
def test_exclusive_consumer(
    channel: Channel, other: Channel, name: str, first: bool, second: bool
) -> None:
    channel.declare(name)
    tag = channel.consume(name, exclusive=first)
    other.send("Basic.Consume", queue=name, exclusive=second)
    other.refused(
        403, f"ACCESS_REFUSED - queue '{name}' in vhost '/' in exclusive use", "Basic.Consume"
    )
    channel.call("Basic.Cancel", consumer_tag=tag)
    other.open()
    other.consume(name, exclusive=second)


@pytest.mark.parametrize("end", ["channel", "connection", "socket"])
def test_exclusivity_ends_with_its_consumer(
    connect: Connect, other: Channel, name: str, end: str
) -> None:
    channel = connect().channel()
    channel.declare(name)
    channel.consume(name, exclusive=True)
    if end == "channel":
        channel.close()
    elif end == "connection":
        channel.client.close()
    else:
        channel.client.socket.close()
        wait_until(lambda: other.declare(name).consumer_count == 0, TIMEOUT_S, "its end")
    other.consume(name, exclusive=True)


def test_cancel_of_an_unknown_tag_is_answered(channel: Channel) -> None:
    assert channel.call("Basic.Cancel", consumer_tag="no one").consumer_tag == "no one"


def test_cancel_leaves_unacked_valid(channel: Channel, name: str) -> None:
    channel.filled(name, 2)
    tag = channel.consume(name)
    channel.bodies(2)
    channel.call("Basic.Cancel", consumer_tag=tag)
    assert channel.ready(name) == 0
    channel.send("Basic.Ack", delivery_tag=1)
    channel.send("Basic.Nack", delivery_tag=2, requeue=True)
    assert channel.drain(name) == [b"1"]


def test_deleting_the_queue_cancels_its_consumers(
    channel: Channel, other: Channel, name: str
) -> None:
    channel.declare(name)
    tag = channel.consume(name)
    other.call("Queue.Delete", queue=name)
    cancel = channel.expect("Basic.Cancel")
    assert (cancel.consumer_tag, cancel.nowait) == (tag, True)
    channel.declare(name)
    assert channel.consume(name, consumer_tag=tag) == tag


@pytest.mark.differs("knows no cancel-ok from a client")
def test_cancel_ok_from_a_client_is_ignored(channel: Channel, other: Channel, name: str) -> None:
    channel.declare(name)
    tag = channel.consume(name)
    other.call("Queue.Delete", queue=name)
    channel.expect("Basic.Cancel")
    channel.send("Basic.CancelOk", consumer_tag=tag)
    channel.declare(name)


def test_cancel_is_not_sent_without_the_capability(
    connect: Connect, other: Channel, name: str
) -> None:
    channel = connect(capabilities={}).channel()
    channel.declare(name)
    channel.consume(name)
    other.call("Queue.Delete", queue=name)
    assert channel.declare(name).consumer_count == 0


# Order among consumers


def test_round_robin(channel: Channel, name: str) -> None:
    channel.declare(name)
    tags = [channel.consume(name, no_ack=True) for _ in range(10)]
    for number in range(100):
        channel.publish(b"%d" % number, routing_key=name)
    received = [channel.content().method.consumer_tag for _ in range(100)]
    assert {tag: received.count(tag) for tag in tags} == dict.fromkeys(tags, 10)


def test_consumer_priority(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.call("Basic.Qos", prefetch_count=2)
    tags = {
        channel.consume(name, arguments={"x-priority": priority}): priority
        for priority in (-1, 5, 0)
    }
    for number in range(6):
        channel.publish(b"%d" % number, routing_key=name)
    order = [tags[channel.content().method.consumer_tag] for _ in range(6)]
    assert order == [5, 5, 0, 0, -1, -1]
    channel.send("Basic.Ack", delivery_tag=6, multiple=True)
    for number in range(2):
        channel.publish(b"%d" % number, routing_key=name)
    assert [tags[channel.content().method.consumer_tag] for _ in range(2)] == [5, 5]


@pytest.mark.parametrize(
    "high", [b"b\x05", b"s\x00\x05", b"I\x00\x00\x00\x05", b"l" + bytes(7) + b"\x05"]
)
def test_consumer_priority_of_any_integer_type(channel: Channel, name: str, high: bytes) -> None:
    channel.declare(name)
    channel.consume(name, no_ack=True, arguments={"x-priority": 4})
    tag = channel.consume(name, no_ack=True, arguments={"x-priority": frames.Raw(high)})
    channel.publish(b"a", routing_key=name)
    assert channel.content().method.consumer_tag == tag


@pytest.mark.parametrize("priority", ["high", 1.5, True, None])
def test_consumer_priority_is_an_integer(channel: Channel, name: str, priority: object) -> None:
    channel.declare(name)
    channel.send("Basic.Consume", queue=name, arguments={"x-priority": priority})
    channel.refused(406, culprit="Basic.Consume")


# Prefetch


def test_prefetch_is_by_consumer(channel: Channel, name: str) -> None:
    channel.filled(name, 5)
    channel.call("Basic.Qos", prefetch_count=1)
    first = channel.consume(name)
    channel.bodies(1)
    channel.call("Basic.Qos", prefetch_count=2)
    second = channel.consume(name)
    received = [channel.content().method.consumer_tag for _ in range(2)]
    assert received == [second, second]
    assert channel.ready(name) == 2
    channel.send("Basic.Ack", delivery_tag=1)
    assert channel.content().method.consumer_tag == first
    assert channel.ready(name) == 1


def test_prefetch_of_the_channel(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.call("Basic.Qos", prefetch_count=3, global_=True)
    for _ in range(2):
        channel.consume(name)
    for body in (b"a", b"b", b"c", b"d", b"e"):
        channel.publish(body, routing_key=name)
    channel.bodies(3)
    assert channel.ready(name) == 2
    channel.send("Basic.Ack", delivery_tag=3, multiple=True)
    channel.bodies(2)


@pytest.mark.differs("does not count as ready what its limiter holds back")
def test_both_prefetches_apply(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.call("Basic.Qos", prefetch_count=2)
    channel.call("Basic.Qos", prefetch_count=3, global_=True)
    for _ in range(2):
        channel.consume(name)
    for number in range(9):
        channel.publish(b"%d" % number, routing_key=name)
    received = [channel.content().method.consumer_tag for _ in range(3)]
    assert sorted(received.count(tag) for tag in set(received)) == [1, 2]
    assert channel.ready(name) == 6


def test_prefetch_zero_is_unlimited(channel: Channel, name: str) -> None:
    bodies = channel.filled(name, 50)
    channel.call("Basic.Qos", prefetch_count=1)
    channel.call("Basic.Qos", prefetch_count=0)
    channel.consume(name)
    assert channel.bodies(50) == bodies


def test_prefetch_does_not_limit_no_ack(channel: Channel, name: str) -> None:
    bodies = channel.filled(name, 5)
    channel.call("Basic.Qos", prefetch_count=1)
    channel.call("Basic.Qos", prefetch_count=1, global_=True)
    channel.consume(name, no_ack=True)
    assert channel.bodies(5) == bodies


@pytest.mark.parametrize("way", ["ack", "qos"])
def test_a_used_up_channel_prefetch_stops_no_ack(
    channel: Channel, other: Channel, name: str, way: str
) -> None:
    for queue in (f"{name}.1", f"{name}.2"):
        channel.declare(queue)
    channel.call("Basic.Qos", prefetch_count=1, global_=True)
    channel.consume(f"{name}.1")
    other.put(f"{name}.1", b"unacked")
    tag = channel.content().method.delivery_tag
    channel.consume(f"{name}.2", no_ack=True)
    other.put(f"{name}.2", b"a", b"b")
    assert other.ready(f"{name}.2") == 2
    if way == "ack":
        channel.send("Basic.Ack", delivery_tag=tag)
    else:
        channel.send("Basic.Qos", prefetch_count=2, global_=True)
        channel.expect("Basic.QosOk")
    assert channel.bodies(2) == [b"a", b"b"]
