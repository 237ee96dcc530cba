"""Known defects of other brokers, by the numbers of their reports, that no section tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .raw import Channel, Client

Connect = Callable[..., Client]


def test_lavinmq_583_ttl_restarts_with_each_dead_lettering(channel: Channel, name: str) -> None:
    """A message that had waited in one queue expired at once in the next."""
    names = [f"{name}.{number}" for number in (1, 2, 3)]
    for queue, target, ttl in zip(names, names[1:], (100, 60_000), strict=False):
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": target}
        channel.declare(queue, arguments={"x-message-ttl": ttl} | letters)
    channel.declare(names[2])
    channel.put(names[0], b"a")
    channel.consume(names[1], no_ack=True)
    assert channel.content().body == b"a"
    assert channel.ready(names[2]) == 0


def test_lavinmq_2206_nothing_to_acknowledge_in_a_transaction(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.call("Tx.Select")
    channel.send("Basic.Ack", delivery_tag=0, multiple=True)
    channel.call("Tx.Commit")
    channel.publish(b"a", routing_key=name)
    channel.call("Tx.Commit")
    assert channel.drain(name) == [b"a"]


def test_lavinmq_2198_a_global_prefetch_that_is_lowered(channel: Channel, name: str) -> None:
    """Below what is out already: nothing more comes until there is room."""
    channel.filled(name, 10)
    channel.call("Basic.Qos", prefetch_count=5, global_=True)
    channel.consume(name)
    channel.bodies(5)
    channel.call("Basic.Qos", prefetch_count=2, global_=True)
    channel.send("Basic.Ack", delivery_tag=2, multiple=True)
    assert channel.ready(name) == 5
    channel.send("Basic.Ack", delivery_tag=4, multiple=True)
    assert channel.bodies(1) == [b"5"]
    assert channel.ready(name) == 4


@pytest.mark.differs("has this defect until 3.11")
def test_rabbitmq_5609_requeuing_consumer_keeps_its_prefetch(channel: Channel, name: str) -> None:
    """A message that came back gave its credit twice when it died by it."""
    channel.declare(name, durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 1})
    channel.put(name, *(b"%d" % number for number in range(5)))
    channel.call("Basic.Qos", prefetch_count=1)
    channel.consume(name)
    for body in (b"0", b"0", b"1", b"1", b"2"):
        message = channel.content()
        assert message.body == body
        channel.send("Basic.Reject", delivery_tag=message.method.delivery_tag, requeue=True)
    assert channel.content().body == b"2"
    assert channel.ready(name) == 2


@pytest.mark.differs("stops too")
def test_rabbitmq_14141_a_newcomer_does_not_stop_a_single_active_consumer(
    connect: Connect, channel: Channel, name: str
) -> None:
    """One that requeues all it gets, then one with a higher priority: nothing moved any more."""
    arguments = {
        "x-queue-type": "quorum", "x-single-active-consumer": True, "x-delivery-limit": -1,
    }  # fmt: skip
    channel.declare(name, durable=True, arguments=arguments)
    channel.put(name, b"a", b"b")
    first, second = connect().channel(), connect().channel()
    first.call("Basic.Qos", prefetch_count=1)
    first.consume(name)
    tag = first.content().method.delivery_tag
    first.send("Basic.Nack", delivery_tag=tag, requeue=True)
    message = first.content()
    second.consume(name, arguments={"x-priority": 100})
    first.send("Basic.Nack", delivery_tag=message.method.delivery_tag, requeue=True)
    assert first.content().body == b"a"
    first.close()
    assert sorted(second.bodies(2)) == [b"a", b"b"]
