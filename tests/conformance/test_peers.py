"""Known defects of other brokers, by the numbers of their reports, and what newer ones took away.

Each would be a fault here; the tests by section hold the same rules in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.server import WarrenServer

from . import raw
from .raw import Channel, Client

Fields = dict[str, Any]
Connect = Callable[..., Client]
PERSISTENT = {"delivery_mode": 2}

needs_plugin = pytest.mark.differs("needs a plugin")


# LavinMQ: routing


@pytest.mark.parametrize(
    ("pattern", "key", "matches"),
    [
        ("a.*.c.#", "a.b.c", True),
        ("a.*.c.#", "a.b.c.d", True),
        ("#.c", "c", True),
        ("a.*", "a.b.c", False),
        ("*.test", "test.test", True),
    ],
)
def test_lavinmq_1607_and_1299_topic_patterns(
    channel: Channel, name: str, pattern: str, key: str, matches: bool
) -> None:
    """`#` did not match no words at the end; `a.*` matched more than one."""
    channel.declare(name)
    channel.call("Exchange.Declare", exchange=name, exchange_type="topic")
    channel.call("Queue.Bind", queue=name, exchange=name, routing_key=pattern)
    channel.publish(b"x", exchange=name, routing_key=key)
    assert channel.drain(name) == [b"x"] * matches


def test_lavinmq_1550_bcc_is_there_for_dead_letters(channel: Channel, name: str) -> None:
    """It was taken off when routed, so that dead letters went by fewer keys."""
    for queue in (f"{name}.key", f"{name}.bcc"):
        channel.declare(queue)
    channel.call("Exchange.Declare", exchange=name, exchange_type="direct")
    channel.declare(name, arguments={"x-dead-letter-exchange": name})
    for key in ("key", "bcc"):
        channel.call(
            "Queue.Bind", queue=f"{name}.{key}", exchange=name, routing_key=f"{name}.{key}"
        )
    channel.call("Queue.Bind", queue=name, exchange="amq.direct", routing_key=f"{name}.key")
    channel.publish(
        b"x",
        {"headers": {"BCC": [f"{name}.bcc"]}},
        exchange="amq.direct",
        routing_key=f"{name}.key",
    )
    tag = channel.taken(name, no_ack=False).method.delivery_tag
    channel.send("Basic.Reject", delivery_tag=tag, requeue=False)
    for queue in (f"{name}.key", f"{name}.bcc"):
        channel.consume(queue, no_ack=True)
        assert channel.content().body == b"x"


# LavinMQ: what a restart forgot


@pytest.fixture(scope="module")
def restarted() -> Iterator[WarrenServer]:
    with WarrenServer() as server:
        yield server


def confirmed(channel: Channel, queue: str, *bodies: bytes, **properties: object) -> None:
    """Publishes, persistent, and waits until that is kept."""
    channel.call("Confirm.Select")
    for body in bodies:
        channel.publish(body, PERSISTENT | properties, routing_key=queue)
        channel.expect("Basic.Ack")


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_lavinmq_1911_redelivery_is_known_after_a_restart(
    restarted: WarrenServer, name: str, how: str
) -> None:
    """Both the flag and the count, so that a message that kills its readers ends some day."""
    with raw.connect(restarted.amqp_port) as client:
        channel = client.channel()
        channel.declare(name, durable=True, arguments={"x-delivery-limit": 2})
        confirmed(channel, name, b"poison")
        tag = channel.taken(name, no_ack=False).method.delivery_tag
        channel.send("Basic.Reject", delivery_tag=tag, requeue=True)
        confirmed(channel, name, b"next")
    if how == "kill":
        restarted.kill()
    restarted.restart()
    with raw.connect(restarted.amqp_port) as client:
        channel = client.channel()
        message = channel.taken(name, no_ack=False)
        headers: Any = message.properties.headers
        assert (message.body, message.method.redelivered) == (b"poison", True)
        assert headers["x-delivery-count"] == 1
        for _ in range(2):
            tag = message.method.delivery_tag
            channel.send("Basic.Reject", delivery_tag=tag, requeue=True)
            message = channel.taken(name, no_ack=False)
        assert message.body == b"next"


def test_lavinmq_434_priorities_after_a_restart(restarted: WarrenServer, name: str) -> None:
    """Of what was there and of what came later."""
    arguments = {"x-max-priority": 10}
    with raw.connect(restarted.amqp_port) as client:
        channel = client.channel()
        channel.declare(name, durable=True, arguments=arguments)
        for priority in (0, 9, 1):
            confirmed(channel, name, b"%d" % priority, priority=priority)
    restarted.restart()
    with raw.connect(restarted.amqp_port) as client:
        channel = client.channel()
        channel.declare(name, durable=True, arguments=arguments)
        for priority in (5, 0, 10):
            confirmed(channel, name, b"%d" % priority, priority=priority)
        assert channel.drain(name) == [b"10", b"9", b"5", b"1", b"0", b"0"]


# LavinMQ: counting


@pytest.mark.differs("counts in quorum queues only")
def test_lavinmq_975_no_count_on_the_first_delivery(channel: Channel, name: str) -> None:
    channel.declare(name, arguments={"x-delivery-limit": 5})
    channel.put(name, b"a")
    assert "x-delivery-count" not in (channel.taken(name).properties.headers or {})


def test_lavinmq_1420_and_1439_priority_queues_are_consumed_and_counted(
    channel: Channel, name: str
) -> None:
    """Consumers got nothing; the size never came down to 0."""
    channel.declare(name, arguments={"x-max-priority": 3})
    channel.consume(name, no_ack=True)
    for priority in range(4):
        channel.publish(b"a", {"priority": priority}, routing_key=name)
        assert channel.content().body == b"a"
    assert channel.ready(name) == 0


def test_lavinmq_583_time_begins_anew_with_each_death(channel: Channel, name: str) -> None:
    """What had waited in one queue expired at once in the next. The clock is a third one."""
    names = [f"{name}.{number}" for number in (1, 2, 3)]
    for queue, target, ttl in zip(names, names[1:], (100, 60_000), strict=False):
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": target}
        channel.declare(queue, arguments={"x-message-ttl": ttl} | letters)
    channel.declare(names[2])
    channel.put(names[0], b"a")
    channel.consume(names[1], no_ack=True)
    assert channel.content().body == b"a"
    assert channel.ready(names[2]) == 0


# LavinMQ: acknowledgements and transactions


@pytest.mark.differs("refuses requeue=false with 540")
def test_lavinmq_2206_recover_to_a_living_consumer(channel: Channel, name: str) -> None:
    """It ended the connection."""
    channel.declare(name)
    channel.put(name, b"a")
    tag = channel.consume(name)
    channel.content()
    channel.send("Basic.Recover", requeue=False)
    method = channel.client.receive(channel.number)
    if method.name == "Basic.RecoverOk":
        message = channel.content()
    else:
        message = channel.rest_of(method)
        channel.expect("Basic.RecoverOk")
    assert (message.method.consumer_tag, message.method.redelivered) == (tag, True)


def test_lavinmq_2206_nothing_to_acknowledge_in_a_transaction(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.call("Tx.Select")
    channel.send("Basic.Ack", delivery_tag=0, multiple=True)
    channel.call("Tx.Commit")
    channel.publish(b"a", routing_key=name)
    channel.call("Tx.Commit")
    assert channel.drain(name) == [b"a"]


def test_lavinmq_2206_recover_leaves_what_a_transaction_acknowledged(
    channel: Channel, other: Channel, name: str
) -> None:
    other.declare(name)
    other.put(name, b"a")
    channel.call("Tx.Select")
    tag = channel.taken(name, no_ack=False).method.delivery_tag
    channel.send("Basic.Ack", delivery_tag=tag)
    channel.call("Basic.Recover", requeue=True)
    channel.call("Tx.Commit")
    channel.close()
    assert other.drain(name) == []


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


@pytest.mark.parametrize("consumers", [2, 7])
def test_lavinmq_1011_consumers_are_served_evenly(
    channel: Channel, name: str, consumers: int
) -> None:
    channel.declare(name)
    tags = [channel.consume(name, no_ack=True) for _ in range(consumers)]
    for _ in range(consumers * 10):
        channel.publish(b"a", routing_key=name)
    got = [channel.content().method.consumer_tag for _ in range(consumers * 10)]
    assert {tag: got.count(tag) for tag in tags} == dict.fromkeys(tags, 10)


# LavinMQ: alarms


def test_lavinmq_2197_blocked_is_sent_if_it_is_advertised(name: str) -> None:
    """It was advertised, and publishing closed the channel with 406 instead."""
    with (
        WarrenServer(args=["--disk-free-limit", "1000000TiB"]) as server,
        raw.Client(server.amqp_port) as client,
    ):
        assert client.start().server_properties["capabilities"]["connection.blocked"] is True
        client.log_in()
        client.tune()
        client.open()
        channel = client.channel()
        channel.declare(name)
        channel.publish(b"a", routing_key=name)
        assert client.expect("Connection.Blocked").reason == "low on disk"


# LavinMQ: delays


def delayed(channel: Channel, name: str) -> str:
    """A delayed exchange with a queue, whose name is given."""
    arguments = {"x-delayed-type": "fanout"}
    channel.call(
        "Exchange.Declare", exchange=name, exchange_type="x-delayed-message", arguments=arguments
    )
    channel.declare(f"{name}.q")
    channel.call("Queue.Bind", queue=f"{name}.q", exchange=name)
    return f"{name}.q"


@needs_plugin
def test_lavinmq_1587_short_delays_do_not_wait_for_long_ones(channel: Channel, name: str) -> None:
    queue = delayed(channel, name)
    for delay in (60_000, 200, 100):
        channel.publish(b"%d" % delay, {"headers": {"x-delay": delay}}, exchange=name)
    channel.consume(queue, no_ack=True)
    assert channel.bodies(2) == [b"100", b"200"]


@needs_plugin
@pytest.mark.parametrize("delay", [1 << 31, (1 << 32) - 1])
def test_lavinmq_1781_large_delays_are_no_overflow(channel: Channel, name: str, delay: int) -> None:
    queue = delayed(channel, name)
    for one in (delay, 50):
        channel.publish(b"%d" % one, {"headers": {"x-delay": one}}, exchange=name)
    channel.consume(queue, no_ack=True)
    assert channel.bodies(1) == [b"50"]


@needs_plugin
def test_lavinmq_bad_delays_do_not_mean_none(channel: Channel, name: str) -> None:
    delayed(channel, name)
    channel.publish(b"a", {"headers": {"x-delay": "soon"}}, exchange=name)
    assert "x-delay" in channel.refused(406, culprit="Basic.Publish")


# LavinMQ: streams


def test_lavinmq_1293_readers_of_a_stream_begin_with_what_comes_next(
    channel: Channel, name: str
) -> None:
    channel.declare(name, durable=True, arguments={"x-queue-type": "stream"})
    confirmed(channel, name, b"old")
    reader = channel.client.channel(2)
    reader.call("Basic.Qos", prefetch_count=10)
    reader.consume(name)
    confirmed(channel, name, b"new")
    assert reader.content().body == b"new"


def test_lavinmq_1243_all_readers_of_a_stream_are_told_at_once(channel: Channel, name: str) -> None:
    channel.declare(name, durable=True, arguments={"x-queue-type": "stream"})
    readers = [channel.client.channel(number) for number in range(2, 12)]
    for reader in readers:
        reader.call("Basic.Qos", prefetch_count=10)
        reader.consume(name)
    confirmed(channel, name, b"a")
    assert [reader.content().body for reader in readers] == [b"a"] * len(readers)


# RabbitMQ 4.3 refuses what follows; old clients use it


def test_rabbitmq_4_3_removed_transient_shared_queues(
    channel: Channel, other: Channel, name: str
) -> None:
    channel.declare(name, durable=False, exclusive=False)
    other.put(name, b"a")
    assert channel.drain(name) == [b"a"]


def test_rabbitmq_4_3_removed_global_qos(channel: Channel, name: str) -> None:
    """One limit for all consumers of the channel."""
    channel.declare(name)
    channel.call("Basic.Qos", prefetch_count=3, global_=True)
    tags = {channel.consume(name) for _ in range(2)}
    for number in range(4):
        channel.publish(b"%d" % number, routing_key=name)
    assert {channel.content().method.consumer_tag for _ in range(3)} == tags
    assert channel.ready(name) == 1


@pytest.mark.differs("refuses it with 540, since 2.0")
def test_rabbitmq_removed_flow_off(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.consume(name, no_ack=True)
    assert channel.call("Channel.Flow", active=False).active is False
    channel.publish(b"a", routing_key=name)
    assert channel.ready(name) == 1
    assert channel.call("Channel.Flow", active=True).active is True
    assert channel.content().body == b"a"


@pytest.mark.differs("refuses it with 540, since 3.0")
def test_rabbitmq_removed_immediate(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.publish(b"a", routing_key=name, immediate=True)
    assert channel.content("Basic.Return").method.reply_code == 313


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("x-queue-mode", "lazy"),
        ("x-queue-mode", "default"),
        ("x-queue-master-locator", "min-masters"),
        ("x-queue-version", 1),
    ],
)
def test_rabbitmq_4_3_removed_arguments(
    channel: Channel, name: str, argument: str, value: object
) -> None:
    """Declared with it, and again with it: the same queue, that works."""
    for _ in range(2):
        channel.declare(name, durable=True, arguments={argument: value})
    channel.put(name, b"a", properties=PERSISTENT)
    assert channel.drain(name) == [b"a"]
    channel.call("Queue.Delete", queue=name)


def test_rabbitmq_4_3_deprecated_transactions(channel: Channel, other: Channel, name: str) -> None:
    other.declare(name)
    channel.call("Tx.Select")
    channel.publish(b"a", routing_key=name)
    channel.call("Tx.Commit")
    channel.publish(b"b", routing_key=name)
    channel.call("Tx.Rollback")
    assert other.drain(name) == [b"a"]


# RabbitMQ: what went wrong elsewhere


@needs_plugin
@pytest.mark.parametrize("arguments", [{"hash-header": "who"}, {"hash-property": "message_id"}])
def test_rabbitmq_11808_nothing_to_hash_goes_to_one_queue(
    channel: Channel, name: str, arguments: Fields
) -> None:
    """It crashed the publisher's channel."""
    channel.call(
        "Exchange.Declare", exchange=name, exchange_type="x-consistent-hash", arguments=arguments
    )
    queues = [f"{name}.{number}" for number in range(5)]
    for queue in queues:
        channel.declare(queue)
        channel.call("Queue.Bind", queue=queue, exchange=name, routing_key="1")
    for number in range(20):
        channel.publish(b"a", exchange=name, routing_key=f"key-{number}")
        channel.publish(b"a", {"headers": {"else": number}}, exchange=name)
    assert sorted(channel.ready(queue) for queue in queues) == [0, 0, 0, 0, 40]


@pytest.mark.differs("has this defect until 3.11")
def test_rabbitmq_5609_one_that_requeues_keeps_to_its_prefetch(channel: Channel, name: str) -> None:
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
