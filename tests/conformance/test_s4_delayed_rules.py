"""amqp.md section 4: x-delayed-message, which RabbitMQ has as a plugin.

What is waited for is the delay itself; that nothing comes early is shown with a clock that the
test turns, in tests/core.
"""

from __future__ import annotations

from typing import Any

import pytest

from .raw import Channel, Content

Fields = dict[str, Any]
LONG_MS = 3_600_000

pytestmark = pytest.mark.differs("needs a plugin")


def delayed(channel: Channel, name: str, kind: str = "direct", **fields: object) -> str:
    arguments = {"x-delayed-type": kind}
    channel.call(
        "Exchange.Declare", exchange=name, exchange_type="x-delayed-message",
        arguments=arguments, **fields,
    )  # fmt: skip
    return name


def bound(channel: Channel, source: str, key: str = "k", arguments: Fields | None = None) -> str:
    queue = str(channel.declare("").queue)
    channel.call("Queue.Bind", queue=queue, exchange=source, routing_key=key, arguments=arguments)
    return queue


def publish(channel: Channel, name: str, body: bytes, delay: object, key: str = "k") -> None:
    channel.publish(body, {"headers": {"x-delay": delay}}, exchange=name, routing_key=key)


def delivered(channel: Channel, queue: str, count: int) -> list[Content]:
    channel.consume(queue, no_ack=True)
    return [channel.content() for _ in range(count)]


def test_order_is_by_the_time_that_is_due(channel: Channel, name: str) -> None:
    queue = bound(channel, delayed(channel, name))
    for delay in (400, 100, 300, 200):
        publish(channel, name, b"%d" % delay, delay)
    channel.publish(b"now", exchange=name, routing_key="k")
    assert channel.ready(queue) == 1
    bodies = [message.body for message in delivered(channel, queue, 5)]
    assert bodies == [b"now", b"100", b"200", b"300", b"400"]


def test_equal_times_keep_the_order_of_publishing(channel: Channel, name: str) -> None:
    queue = bound(channel, delayed(channel, name))
    bodies = [b"%d" % number for number in range(50)]
    for body in bodies:
        publish(channel, name, body, 100)
    assert [message.body for message in delivered(channel, queue, 50)] == bodies


def test_header_is_negated_when_it_is_over(channel: Channel, name: str) -> None:
    """So that the message waits at no other exchange; the rest is the publisher's."""
    queue = bound(channel, delayed(channel, name))
    properties = {"headers": {"x-delay": 20, "own": 1}, "message_id": "m"}
    channel.publish(b"a", properties, exchange=name, routing_key="k")
    (message,) = delivered(channel, queue, 1)
    assert message.properties.headers == {"x-delay": -20, "own": 1}
    assert message.properties.message_id == "m"
    assert (message.method.exchange, message.method.routing_key) == (name, "k")


def test_one_delay_for_two_exchanges(channel: Channel, name: str) -> None:
    """The second would hold it as long again."""
    first, second = delayed(channel, f"{name}.1"), delayed(channel, f"{name}.2")
    channel.call("Exchange.Bind", source=first, destination=second, routing_key="k")
    queue = bound(channel, second)
    publish(channel, first, b"a", 20)
    (message,) = delivered(channel, queue, 1)
    assert message.properties.headers == {"x-delay": -20}


@pytest.mark.parametrize("headers", [{}, {"x-delay": 0}, {"x-delay": -5}, {"x-delay": None}])
def test_no_delay_is_now(channel: Channel, name: str, headers: Fields) -> None:
    queue = bound(channel, delayed(channel, name))
    channel.publish(b"a", {"headers": headers}, exchange=name, routing_key="k")
    assert channel.drain(queue) == [b"a"]


@pytest.mark.parametrize("delay", [1 << 31, (1 << 32) - 1])
def test_long_delays_are_held(channel: Channel, name: str, delay: int) -> None:
    """A short one is the clock."""
    queue = bound(channel, delayed(channel, name))
    publish(channel, name, b"long", delay)
    publish(channel, name, b"clock", 50)
    (message,) = delivered(channel, queue, 1)
    assert message.body == b"clock"
    assert channel.ready(queue) == 0


@pytest.mark.parametrize("delay", [1 << 32, 1 << 40, "soon", "", True, [5], {"ms": 5}])
def test_delay_that_is_none(channel: Channel, name: str, delay: object) -> None:
    bound(channel, delayed(channel, name))
    publish(channel, name, b"a", delay)
    assert "x-delay" in channel.refused(406, culprit="Basic.Publish")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x-delayed-type": "x-delayed-message"},
        {"x-delayed-type": "nonsense"},
        {"x-delayed-type": ""},
        {"x-delayed-type": 5},
    ],
)
def test_type_that_can_not_be_delayed(channel: Channel, name: str, arguments: Fields) -> None:
    channel.send(
        "Exchange.Declare", exchange=name, exchange_type="x-delayed-message", arguments=arguments
    )
    assert "x-delayed-type" in channel.refused(406, culprit="Exchange.Declare")


@pytest.mark.parametrize(
    ("kind", "binding", "key"),
    [
        ("direct", "a", "a"),
        ("fanout", "", "any"),
        ("topic", "a.#", "a.b"),
        ("x-consistent-hash", "1", "any"),
        ("x-random", "", "any"),
    ],
)
def test_each_type_can_be_delayed(
    channel: Channel, name: str, kind: str, binding: str, key: str
) -> None:
    queue = bound(channel, delayed(channel, name, kind), binding)
    publish(channel, name, b"a", 20, key)
    (message,) = delivered(channel, queue, 1)
    assert message.body == b"a"


def test_headers_exchange_can_be_delayed(channel: Channel, name: str) -> None:
    arguments = {"x-match": "all", "colour": "red"}
    queue = bound(channel, delayed(channel, name, "headers"), "", arguments)
    for colour in ("blue", "red"):
        headers = {"x-delay": 20, "colour": colour}
        channel.publish(colour.encode(), {"headers": headers}, exchange=name)
    (message,) = delivered(channel, queue, 1)
    assert message.body == b"red"


def test_held_is_routed(channel: Channel, name: str) -> None:
    """For confirms and mandatory alike, whatever is bound."""
    delayed(channel, name)
    channel.call("Confirm.Select")
    properties = {"headers": {"x-delay": LONG_MS}, "delivery_mode": 2}
    channel.publish(b"a", properties, exchange=name, routing_key="k", mandatory=True)
    assert channel.expect("Basic.Ack").delivery_tag == 1


def test_bindings_count_when_it_is_over(channel: Channel, name: str) -> None:
    delayed(channel, name)
    gone = bound(channel, name)
    publish(channel, name, b"a", 100)
    channel.call("Queue.Unbind", queue=gone, exchange=name, routing_key="k")
    queue = bound(channel, name)
    (message,) = delivered(channel, queue, 1)
    assert message.body == b"a"
    assert channel.ready(gone) == 0


def test_exchange_that_goes_takes_what_it_holds_along(channel: Channel, name: str) -> None:
    """A second exchange is the clock."""
    queue = bound(channel, delayed(channel, name))
    channel.call("Queue.Bind", queue=queue, exchange=delayed(channel, f"{name}.2"), routing_key="k")
    publish(channel, name, b"a", 50)
    publish(channel, f"{name}.2", b"clock", 100)
    channel.call("Exchange.Delete", exchange=name)
    (message,) = delivered(channel, queue, 1)
    assert message.body == b"clock"


def test_in_a_transaction(channel: Channel, name: str) -> None:
    queue = bound(channel, delayed(channel, name))
    channel.call("Tx.Select")
    publish(channel, name, b"no", 20)
    channel.call("Tx.Rollback")
    publish(channel, name, b"yes", 20)
    channel.call("Tx.Commit")
    (message,) = delivered(channel, queue, 1)
    assert message.body == b"yes"
