"""amqp.md section 4, row `x-delayed-message`: messages that wait at their exchange.

No test measures time: two messages show by their order which one waited longer.
"""

from __future__ import annotations

from typing import Any

import pytest

from . import frames
from .raw import Channel

pytestmark = pytest.mark.differs("the plugin is not installed")

TYPES = ["direct", "topic", "fanout", "headers"]
FAR_MS = 3_600_000


def delayed(channel: Channel, name: str, inner: str = "direct", **arguments: Any) -> None:
    """An exchange, with a queue of the same name bound by that name."""
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    channel.call(
        "Exchange.Declare", exchange=name, exchange_type="x-delayed-message",
        arguments={"x-delayed-type": inner} | given,
    )  # fmt: skip
    channel.declare(name)
    channel.call("Queue.Bind", queue=name, exchange=name, routing_key=name)


def send(channel: Channel, name: str, body: bytes, delay: object, **fields: object) -> None:
    headers = {"x-delay": delay}
    channel.publish(body, {"headers": headers}, exchange=name, routing_key=name, **fields)


@pytest.mark.parametrize("inner", TYPES)
def test_messages_come_when_they_are_due(channel: Channel, name: str, inner: str) -> None:
    """Those of one read, whatever order they came in."""
    delayed(channel, name, inner)
    channel.consume(name, no_ack=True)
    row = [
        frames.publish_frames(
            channel.number, body, {"headers": {"x-delay": delay}}, exchange=name, routing_key=name
        )
        for body, delay in ((b"third", 90), (b"second", 45), (b"first", 0))
    ]
    channel.client.send(b"".join(row))
    assert channel.bodies(3) == [b"first", b"second", b"third"]


def test_the_header_tells_what_has_waited(channel: Channel, name: str) -> None:
    delayed(channel, name)
    channel.consume(name, no_ack=True)
    send(channel, name, b"a", 5)
    message = channel.content()
    assert message.properties.headers == {"x-delay": -5}
    assert (message.method.exchange, message.method.routing_key) == (name, name)


def test_what_has_waited_does_not_wait_again(channel: Channel, name: str) -> None:
    delayed(channel, name)
    channel.consume(name, no_ack=True)
    send(channel, name, b"again", -FAR_MS)
    assert channel.content().properties.headers == {"x-delay": -FAR_MS}


@pytest.mark.parametrize("delay", ["soon", 2**32, True, b"\xff", [1]])
def test_a_bad_delay(channel: Channel, name: str, delay: object) -> None:
    """A peer's defect (reliability.md): it silently means 0 there."""
    delayed(channel, name)
    send(channel, name, b"a", delay)
    text = channel.refused(406, culprit="Basic.Publish")
    assert text.startswith("PRECONDITION_FAILED - invalid header 'x-delay' ")
    assert f"exchange '{name}' in vhost '/'" in text
    channel.open()
    assert channel.ready(name) == 0


@pytest.mark.parametrize("inner", [None, "none", "x-delayed-message", 5])
def test_a_bad_type(channel: Channel, name: str, inner: object) -> None:
    arguments = {} if inner is None else {"x-delayed-type": inner}
    channel.send(
        "Exchange.Declare", exchange=name, exchange_type="x-delayed-message", arguments=arguments
    )
    text = channel.refused(406, culprit="Exchange.Declare")
    assert f"invalid arg 'x-delayed-type' for exchange '{name}' in vhost '/'" in text


def test_publishers_are_told_that_it_waits(channel: Channel, name: str) -> None:
    delayed(channel, name)
    channel.call("Confirm.Select")
    send(channel, name, b"a", FAR_MS, mandatory=True)
    channel.expect("Basic.Ack")
    channel.publish(b"b", exchange=name, routing_key="nowhere", mandatory=True)
    assert channel.content("Basic.Return").body == b"b"
    channel.expect("Basic.Ack")


def test_the_alternate_exchange_gets_what_finds_no_queue(channel: Channel, name: str) -> None:
    other = f"{name}.other"
    channel.call("Exchange.Declare", exchange=other, exchange_type="fanout")
    channel.declare(other)
    channel.call("Queue.Bind", queue=other, exchange=other)
    delayed(channel, name, alternate_exchange=other)
    channel.call("Queue.Unbind", queue=name, exchange=name, routing_key=name)
    send(channel, name, b"a", 5)
    channel.consume(other, no_ack=True)
    assert channel.content().body == b"a"


def test_with_the_exchange_what_waits_is_gone(channel: Channel, name: str) -> None:
    delayed(channel, name)
    send(channel, name, b"a", 20)
    channel.call("Exchange.Delete", exchange=name)
    delayed(channel, name)
    channel.consume(name, no_ack=True)
    send(channel, name, b"b", 40)
    assert channel.content().body == b"b"


def test_it_is_declared_again_as_it_is(channel: Channel, name: str) -> None:
    for _ in range(2):
        delayed(channel, name, "topic")
    channel.send(
        "Exchange.Declare", exchange=name, exchange_type="x-delayed-message",
        arguments={"x-delayed-type": "direct"},
    )  # fmt: skip
    text = channel.refused(406, culprit="Exchange.Declare")
    assert "inequivalent arg 'x-delayed-type'" in text
