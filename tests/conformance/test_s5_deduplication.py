"""amqp.md section 5, LavinMQ's arguments: messages that come again are dropped."""

from __future__ import annotations

from typing import Any

import pytest

from .raw import Channel

pytestmark = pytest.mark.differs("it has no such arguments")

ARGUMENTS = {"x-message-deduplication": True}


def send(channel: Channel, key: str, body: bytes, value: object, exchange: str = "") -> None:
    headers = {"x-deduplication-header": value}
    channel.publish(body, {"headers": headers}, exchange=exchange, routing_key=key, mandatory=True)


def test_a_queue_drops_and_confirms(channel: Channel, name: str) -> None:
    channel.declare(name, arguments=ARGUMENTS)
    channel.call("Confirm.Select")
    for body, value in ((b"1", "a"), (b"2", "a"), (b"3", "b"), (b"4", "a")):
        send(channel, name, body, value)
        channel.expect("Basic.Ack")
    assert channel.drain(name) == [b"1", b"3"]


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_an_exchange_drops_and_confirms(channel: Channel, name: str, kind: str) -> None:
    channel.call("Exchange.Declare", exchange=name, exchange_type=kind, arguments=ARGUMENTS)
    channel.declare(name)
    channel.call("Queue.Bind", queue=name, exchange=name, routing_key=name)
    channel.call("Confirm.Select")
    for body, value in ((b"1", "a"), (b"2", "a"), (b"3", "b"), (b"4", "a")):
        send(channel, name, body, value, name)
        channel.expect("Basic.Ack")
    assert channel.drain(name) == [b"1", b"3"]


def test_the_last_so_many(channel: Channel, name: str) -> None:
    arguments: dict[str, Any] = ARGUMENTS | {"x-cache-size": 2, "x-deduplication-header": "id"}
    channel.declare(name, arguments=arguments)
    for number in (1, 2, 1, 3, 1):
        channel.publish(b"%d" % number, {"headers": {"id": number}}, routing_key=name)
    assert channel.drain(name) == [b"1", b"2", b"3", b"1"]


@pytest.mark.parametrize(
    ("argument", "value"), [("x-cache-size", 0), ("x-cache-size", 2**40), ("x-cache-ttl", -1)]
)
def test_bad_arguments(channel: Channel, name: str, argument: str, value: int) -> None:
    channel.send("Queue.Declare", queue=name, arguments=ARGUMENTS | {argument: value})
    text = channel.refused(406, culprit="Queue.Declare")
    assert f"invalid arg '{argument}' for queue '{name}' in vhost '/': {value} is out" in text
    channel.open()
    channel.send(
        "Exchange.Declare", exchange=name, exchange_type="direct",
        arguments=ARGUMENTS | {argument: value},
    )  # fmt: skip
    text = channel.refused(406, culprit="Exchange.Declare")
    assert f"invalid arg '{argument}' for exchange '{name}' in vhost '/': {value} is out" in text


def test_a_bad_time_of_a_message(channel: Channel, name: str) -> None:
    channel.declare(name, arguments=ARGUMENTS)
    headers = {"x-deduplication-header": "a", "x-cache-ttl": "soon"}
    channel.publish(b"a", {"headers": headers}, routing_key=name)
    text = channel.refused(406, culprit="Basic.Publish")
    assert text.startswith("PRECONDITION_FAILED - invalid header 'x-cache-ttl' 'soon' ")
