"""amqp.md section 6: deliveries that are not acknowledged in time.

The times here are what is waited for: a channel that closes by itself. That none closes early is
shown with a clock that the test turns, in tests/core.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.server import WarrenServer

from . import raw
from .raw import Channel

Fields = dict[str, Any]
SHORT_MS, LONG_MS = 100, 600_000

pytestmark = pytest.mark.differs("has one timeout for the whole server, from 3.12 on more")


def timed_out(channel: Channel, timeout_ms: int = SHORT_MS) -> None:
    """The channel is closed for it, by no method of the client."""
    text = channel.refused(406, culprit=(0, 0))
    assert text.startswith(
        f"PRECONDITION_FAILED - delivery acknowledgement on channel {channel.number} timed out."
    ), text
    assert str(timeout_ms) in text


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "quorum"}], ids=["classic", "quorum"])
def test_timeout_of_the_queue(
    channel: Channel, other: Channel, name: str, arguments: Fields
) -> None:
    other.declare(name, durable=True, arguments={"x-consumer-timeout": SHORT_MS} | arguments)
    other.put(name, b"a", b"b")
    channel.consume(name)
    assert channel.bodies(2) == [b"a", b"b"]
    timed_out(channel)
    messages = [other.taken(name) for _ in range(2)]
    assert [message.body for message in messages] == [b"a", b"b"]
    assert all(message.method.redelivered for message in messages)
    other.call("Queue.Delete", queue=name)


def test_timeout_of_the_consumer(channel: Channel, name: str) -> None:
    channel.declare(name, arguments={"x-consumer-timeout": LONG_MS})
    channel.put(name, b"a")
    channel.consume(name, arguments={"x-consumer-timeout": SHORT_MS})
    channel.content()
    timed_out(channel)


def test_timeout_of_the_server(name: str) -> None:
    with (
        WarrenServer(args=["--consumer-timeout", str(SHORT_MS)]) as server,
        raw.connect(server.amqp_port) as client,
    ):
        channel = client.channel()
        channel.declare(name)
        channel.put(name, b"a")
        channel.consume(name)
        channel.content()
        timed_out(channel)


def test_fetched_message_times_out(channel: Channel, name: str) -> None:
    channel.declare(name, arguments={"x-consumer-timeout": SHORT_MS})
    channel.put(name, b"a")
    channel.taken(name, no_ack=False)
    timed_out(channel)


def test_oldest_delivery_decides(channel: Channel, name: str) -> None:
    channel.declare(name, arguments={"x-consumer-timeout": SHORT_MS})
    channel.consume(name)
    channel.publish(b"kept", routing_key=name)
    assert channel.content().body == b"kept"
    while True:
        channel.publish(b"acked", routing_key=name)
        method = channel.client.receive(channel.number)
        if method.name == "Channel.Close":
            break
        message = channel.rest_of(method)
        channel.send("Basic.Ack", delivery_tag=message.method.delivery_tag)
    assert method.reply_code == 406
    assert "timed out" in method.reply_text


def test_only_one_channel_is_closed(channel: Channel, other: Channel, name: str) -> None:
    neighbour = channel.client.channel(2)
    channel.declare(name, arguments={"x-consumer-timeout": SHORT_MS})
    channel.put(name, b"a")
    neighbour.consume(name)
    neighbour.content()
    timed_out(neighbour)
    assert channel.drain(name) == [b"a"]
    neighbour.open()
    assert other.ready(name) == 0


def test_no_ack_deliveries_do_not_time_out(channel: Channel, other: Channel, name: str) -> None:
    channel.declare(name, arguments={"x-consumer-timeout": SHORT_MS})
    channel.consume(name, no_ack=True)
    channel.publish(b"a", routing_key=name)
    channel.content()
    other.declare(f"{name}.clock", arguments={"x-consumer-timeout": SHORT_MS})
    other.put(f"{name}.clock", b"tick")
    other.taken(f"{name}.clock", no_ack=False)
    timed_out(other)
    channel.publish(b"b", routing_key=name)
    assert channel.content().body == b"b"


@pytest.mark.parametrize("value", [-1, "5", 1.5, True])
def test_invalid_consumer_timeout(channel: Channel, name: str, value: object) -> None:
    channel.declare(name)
    channel.send("Basic.Consume", queue=name, arguments={"x-consumer-timeout": value})
    assert "x-consumer-timeout" in channel.refused(406, culprit="Basic.Consume")
