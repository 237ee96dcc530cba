"""amqp.md section 3: channels, and the access class that old clients still use."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from . import frames
from .raw import Channel, Client

ACCESS_REQUEST, ACCESS_REQUEST_OK = (30, 10), (30, 11)


def test_client_chooses_channel_numbers(connect: Callable[..., Client]) -> None:
    client = connect(channel_max=4)
    for number in (1, 7, 2048, 65_535):
        channel = client.channel(number)
        assert channel.get(channel.declare().queue) is None


def test_more_channels_than_negotiated(connect: Callable[..., Client]) -> None:
    client = connect(channel_max=3)
    for number in (1, 2, 3):
        client.channel(number)
    client.send_method("Channel.Open", 4)
    client.closed(
        530,
        "NOT_ALLOWED - number of channels opened (3) has reached the negotiated channel_max (3)",
    )


def test_closed_channels_do_not_count(connect: Callable[..., Client]) -> None:
    client = connect(channel_max=3)
    for number in (1, 2, 3, 1, 2, 3):
        client.channel(number).close()


def test_flow_on(channel: Channel) -> None:
    assert channel.call("Channel.Flow", active=True).active is True


@pytest.mark.differs("refuses flow(false) with 540")
def test_flow_off_pauses_deliveries(channel: Channel, other: Channel, name: str) -> None:
    channel.declare(name)
    channel.consume(name, no_ack=True)
    assert channel.call("Channel.Flow", active=False).active is False
    other.put(name, b"a", b"b")
    assert other.ready(name) == 2
    channel.send("Channel.Flow", active=True)
    assert channel.expect("Channel.FlowOk").active is True
    assert channel.bodies(2) == [b"a", b"b"]


@pytest.mark.differs("refuses flow(false) with 540")
def test_flow_off_is_for_one_channel(client: Client, name: str) -> None:
    paused, running = client.channel(1), client.channel(2)
    for channel in (paused, running):
        channel.declare(f"{name}.{channel.number}")
        channel.consume(f"{name}.{channel.number}", no_ack=True)
    paused.call("Channel.Flow", active=False)
    running.publish(b"a", routing_key=f"{name}.2")
    assert running.content().body == b"a"


def test_close_requeues_before_close_ok(client: Client, name: str) -> None:
    closing, staying = client.channel(1), client.channel(2)
    closing.declare(name)
    closing.put(name, b"a", b"b")
    closing.consume(name)
    assert closing.bodies(2) == [b"a", b"b"]
    closing.close()
    messages = [staying.taken(name) for _ in range(2)]
    assert [message.body for message in messages] == [b"a", b"b"]
    assert all(message.method.redelivered for message in messages)


def test_close_ends_consumers_and_keeps_exclusive_queues(client: Client, name: str) -> None:
    closing, staying = client.channel(1), client.channel(2)
    closing.declare(name, exclusive=True)
    closing.consume(name)
    closing.close()
    assert staying.declare(name, exclusive=True).consumer_count == 0


def test_close_of_an_unopened_channel(client: Client) -> None:
    client.send_method("Channel.Close", 5)
    client.closed(504)


def test_access_request_is_always_granted(channel: Channel) -> None:
    request = struct.pack(">HH", *ACCESS_REQUEST) + frames.short_string("/data") + b"\x1f"
    channel.client.send(frames.frame(frames.METHOD, channel.number, request))
    kind, payload = channel.client.receive_raw(channel.number)
    assert kind == frames.METHOD
    assert struct.unpack(">HHH", payload) == (*ACCESS_REQUEST_OK, 1)
