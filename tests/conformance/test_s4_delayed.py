"""amqp.md section 4: x-delayed-message, which RabbitMQ has as a plugin.

What is waited for is the delay itself; that nothing comes early is shown with a clock that the
test turns, in tests/core.
"""

from __future__ import annotations

from typing import Any

import pytest

from . import frames
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


def test_messages_are_delivered_when_due(channel: Channel, name: str) -> None:
    queue = bound(channel, delayed(channel, name))
    publishes = [
        frames.publish_frames(
            channel.number, b"%d" % delay, {"headers": {"x-delay": delay}}, exchange=name,
            routing_key="k",
        )
        for delay in (400, 100, 300, 200)
    ]  # fmt: skip
    channel.client.send(b"".join(publishes))
    channel.publish(b"now", exchange=name, routing_key="k")
    assert channel.ready(queue) == 1
    bodies = [message.body for message in delivered(channel, queue, 5)]
    assert bodies == [b"now", b"100", b"200", b"300", b"400"]


def test_the_header_is_negated_on_release(channel: Channel, name: str) -> None:
    """So that the message waits at no other exchange; the rest is the publisher's."""
    queue = bound(channel, delayed(channel, name))
    properties = {
        "content_type": "text/plain", "priority": 4, "correlation_id": "c", "reply_to": "r",
        "message_id": "m", "message_type": "t", "app_id": "a", "user_id": "guest",
    }  # fmt: skip
    headers = {"headers": {"x-delay": 20, "own": [1, {"deep": True}]}}
    body = bytes(300_000)
    channel.publish(body, headers | properties, exchange=name, routing_key="k")
    (message,) = delivered(channel, queue, 1)
    found = message.properties
    assert found.headers == {"x-delay": -20, "own": [1, {"deep": True}]}
    assert {key: getattr(found, key) for key in properties} == properties
    assert (message.method.exchange, message.method.routing_key) == (name, "k")
    assert (message.body, message.method.redelivered) == (body, False)


def test_a_message_is_delayed_once(channel: Channel, name: str) -> None:
    """The second would hold it as long again."""
    first, second = delayed(channel, f"{name}.1"), delayed(channel, f"{name}.2")
    channel.call("Exchange.Bind", source=first, destination=second, routing_key="k")
    queue = bound(channel, second)
    publish(channel, first, b"a", 20)
    (message,) = delivered(channel, queue, 1)
    assert message.properties.headers == {"x-delay": -20}


@pytest.mark.parametrize("headers", [{}, {"x-delay": 0}, {"x-delay": -LONG_MS}, {"x-delay": None}])
def test_message_without_a_delay_is_routed_at_once(
    channel: Channel, name: str, headers: Fields
) -> None:
    queue = bound(channel, delayed(channel, name))
    channel.publish(b"a", {"headers": headers}, exchange=name, routing_key="k")
    assert channel.drain(queue) == [b"a"]


@pytest.mark.parametrize("delay", [1 << 31, (1 << 32) - 1])
def test_long_delays_wait(channel: Channel, name: str, delay: int) -> None:
    """A short delay measures the time."""
    queue = bound(channel, delayed(channel, name))
    publish(channel, name, b"long", delay)
    publish(channel, name, b"clock", 50)
    (message,) = delivered(channel, queue, 1)
    assert message.body == b"clock"
    assert channel.ready(queue) == 0


@pytest.mark.parametrize("delay", [1 << 32, 1 << 40, "soon", "", True, [5], {"ms": 5}])
def test_an_invalid_delay_is_refused(channel: Channel, name: str, delay: object) -> None:
    bound(channel, delayed(channel, name))
    publish(channel, name, b"a", delay)
    text = channel.refused(406, culprit="Basic.Publish")
    assert text.startswith("PRECONDITION_FAILED - invalid header 'x-delay' ")
    assert f"exchange '{name}' in vhost '/'" in text


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x-delayed-type": "x-delayed-message"},
        {"x-delayed-type": "nonsense"},
        {"x-delayed-type": ""},
        {"x-delayed-type": 5},
        {"x-delayed-type": "x-recent-history"},
    ],
)
def test_an_invalid_type_is_refused(channel: Channel, name: str, arguments: Fields) -> None:
    channel.send(
        "Exchange.Declare", exchange=name, exchange_type="x-delayed-message", arguments=arguments
    )
    text = channel.refused(406, culprit="Exchange.Declare")
    assert f"invalid arg 'x-delayed-type' for exchange '{name}' in vhost '/'" in text


@pytest.mark.parametrize(
    ("kind", "binding", "key"),
    [
        ("direct", "a", "a"),
        ("fanout", "", "any"),
        ("topic", "a.#", "a.b"),
        ("headers", "", "any"),
        ("x-consistent-hash", "1", "any"),
        ("x-modulus-hash", "", "any"),
        ("x-random", "", "any"),
        ("x-local-random", "", "any"),
    ],
)
def test_each_type_can_be_delayed(
    channel: Channel, name: str, kind: str, binding: str, key: str
) -> None:
    colours = {"x-match": "all", "colour": "red"} if kind == "headers" else None
    queue = bound(channel, delayed(channel, name, kind), binding, colours)
    for colour in ("blue", "red") if kind == "headers" else ("red",):
        headers = {"x-delay": 20, "colour": colour}
        channel.publish(colour.encode(), {"headers": headers}, exchange=name, routing_key=key)
    (message,) = delivered(channel, queue, 1)
    assert message.body == b"red"


def test_a_delayed_message_counts_as_routed(channel: Channel, name: str) -> None:
    """For confirms and mandatory alike, whatever is bound."""
    delayed(channel, name)
    channel.call("Confirm.Select")
    properties = {"headers": {"x-delay": LONG_MS}, "delivery_mode": 2}
    channel.publish(b"a", properties, exchange=name, routing_key="k", mandatory=True)
    assert channel.expect("Basic.Ack").delivery_tag == 1
    channel.publish(b"b", exchange=name, routing_key="nowhere", mandatory=True)
    assert channel.content("Basic.Return").body == b"b"


def test_alternate_exchange_gets_unrouted_messages(channel: Channel, name: str) -> None:
    queue = bound(channel, "amq.fanout")
    arguments = {"x-delayed-type": "direct", "alternate-exchange": "amq.fanout"}
    channel.call(
        "Exchange.Declare", exchange=name, exchange_type="x-delayed-message", arguments=arguments
    )
    publish(channel, name, b"a", 5)
    assert delivered(channel, queue, 1)[0].body == b"a"


def test_redeclaration_with_another_type_is_refused(channel: Channel, name: str) -> None:
    for _ in range(2):
        delayed(channel, name, "topic")
    channel.send(
        "Exchange.Declare", exchange=name, exchange_type="x-delayed-message",
        arguments={"x-delayed-type": "direct"},
    )  # fmt: skip
    assert "inequivalent arg 'x-delayed-type'" in channel.refused(406, culprit="Exchange.Declare")


def test_bindings_at_the_release_apply(channel: Channel, name: str) -> None:
    delayed(channel, name)
    gone = bound(channel, name)
    publish(channel, name, b"a", 100)
    channel.call("Queue.Unbind", queue=gone, exchange=name, routing_key="k")
    queue = bound(channel, name)
    (message,) = delivered(channel, queue, 1)
    assert message.body == b"a"
    assert channel.ready(gone) == 0


def test_deleting_the_exchange_drops_delayed_messages(channel: Channel, name: str) -> None:
    """A second exchange measures the time."""
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
