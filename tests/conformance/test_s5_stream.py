"""amqp.md section 5: stream queues."""

from __future__ import annotations

import struct
import time
from typing import Any

import pytest

from . import frames
from .raw import Channel, Content

Fields = dict[str, Any]
STREAM = {"x-queue-type": "stream"}
DAY_S = 86_400


def declare(channel: Channel, name: str, **arguments: object) -> None:
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    channel.declare(name, durable=True, arguments=STREAM | given)


def put(channel: Channel, name: str, *bodies: bytes, **properties: object) -> None:
    """Returns when all are confirmed, which is when they can be read."""
    writer = channel.client.channel(99)
    writer.call("Confirm.Select")
    for body in bodies:
        writer.publish(body, properties, routing_key=name)
    confirmed = 0
    while confirmed < len(bodies):
        ack = writer.expect("Basic.Ack")
        confirmed = ack.delivery_tag if ack.multiple else confirmed + 1
    writer.close()


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def filled(channel: Channel, name: str, count: int) -> list[bytes]:
    bodies = numbered(count)
    declare(channel, name)
    put(channel, name, *bodies)
    return bodies


def read(channel: Channel, name: str, prefetch: int = 100, **arguments: object) -> str:
    """Starts a consumer with these `arguments`, without their `x-`; returns its tag."""
    given = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    channel.call("Basic.Qos", prefetch_count=prefetch)
    return channel.consume(name, arguments=given)


def offset(message: Content) -> int:
    headers: Any = message.properties.headers
    return int(headers["x-stream-offset"])


# What streams don't do


@pytest.mark.parametrize(
    ("method", "fields", "what"),
    [
        ("Basic.Get", {"no_ack": True}, "basic.get"),
        ("Basic.Get", {"no_ack": False}, "basic.get"),
        ("Queue.Purge", {}, "queue.purge"),
    ],
)
def test_get_and_purge_are_refused(
    channel: Channel, name: str, method: str, fields: Fields, what: str
) -> None:
    declare(channel, name)
    channel.send(method, queue=name, **fields)
    text = channel.client.closed(540, culprit=method)
    assert text.startswith(f"NOT_IMPLEMENTED - {what} ")
    assert f"queue '{name}' in vhost '/'" in text


def test_consuming_without_prefetch_is_refused(channel: Channel, name: str) -> None:
    declare(channel, name)
    channel.send("Basic.Consume", queue=name)
    text = channel.refused(406, culprit="Basic.Consume")
    assert text.startswith("PRECONDITION_FAILED - consumer prefetch count is not set for ")
    assert f"queue '{name}' in vhost '/'" in text


def test_consuming_without_acks_is_refused(channel: Channel, name: str) -> None:
    declare(channel, name)
    channel.call("Basic.Qos", prefetch_count=5)
    channel.send("Basic.Consume", queue=name, no_ack=True)
    text = channel.client.closed(540, culprit="Basic.Consume")
    assert f"queue '{name}' in vhost '/'" in text


# Reading


def test_reading_removes_nothing(channel: Channel, other: Channel, name: str) -> None:
    bodies = filled(channel, name, 5)
    for reader in (channel, other, channel):
        tag = read(reader, name, stream_offset="first")
        assert reader.bodies(5) == bodies
        reader.send("Basic.Ack", delivery_tag=0, multiple=True)
        reader.call("Basic.Cancel", consumer_tag=tag)


def test_each_message_carries_its_offset(channel: Channel, name: str) -> None:
    declare(channel, name)
    put(channel, name, *numbered(3), headers={"own": "a"}, message_id="m")
    read(channel, name, stream_offset="first")
    messages = [channel.content() for _ in range(3)]
    assert [message.properties.headers for message in messages] == [
        {"own": "a", "x-stream-offset": number} for number in range(3)
    ]
    assert {message.properties.message_id for message in messages} == {"m"}
    assert not any(message.method.redelivered for message in messages)


def test_all_readers_get_new_messages(channel: Channel, other: Channel, name: str) -> None:
    """LavinMQ #1243: some of several readers were not told at once."""
    declare(channel, name)
    readers = [other.client.channel(number) for number in range(2, 7)]
    for reader in readers:
        read(reader, name)
    put(channel, name, *numbered(3))
    assert [reader.bodies(3) for reader in readers] == [numbered(3)] * 5


@pytest.mark.differs("sends some more than the prefetch")
def test_acks_give_credit(channel: Channel, name: str) -> None:
    bodies = filled(channel, name, 6)
    read(channel, name, prefetch=2, stream_offset="first")
    assert channel.bodies(2) == bodies[:2]
    channel.call("Basic.Qos", prefetch_count=2)
    channel.send("Basic.Ack", delivery_tag=1)
    assert channel.bodies(1) == bodies[2:3]
    channel.call("Basic.Qos", prefetch_count=2)
    channel.send("Basic.Ack", delivery_tag=3, multiple=True)
    assert channel.bodies(2) == bodies[3:5]


# Offsets


@pytest.mark.parametrize(
    ("where", "first"),
    [
        ("first", 0),
        (0, 0),
        (3, 3),
        (9, 9),
        (frames.Raw(b"s\x00\x04"), 4),
        (frames.Raw(b"l" + struct.pack(">q", 5)), 5),
        ("1h", 0),
        ("7D", 0),
        (frames.Raw(b"T" + struct.pack(">Q", 0)), 0),
        (frames.Raw(b"T" + struct.pack(">q", -DAY_S)), 0),
        (frames.Raw(b"T" + struct.pack(">q", -(2**63))), 0),
        (frames.Raw(b"T" + struct.pack(">Q", int(time.time()) - DAY_S)), 0),
    ],
)
def test_offset(channel: Channel, name: str, where: object, first: int) -> None:
    filled(channel, name, 10)
    read(channel, name, stream_offset=where)
    messages = [channel.content() for _ in range(first, 10)]
    assert [offset(message) for message in messages] == list(range(first, 10))
    assert [message.body for message in messages] == numbered(10 - first, first)


FAR_OFF = frames.Raw(b"T" + struct.pack(">q", 1_700_000_000_000))
"""Milliseconds in place of seconds."""


@pytest.mark.parametrize("where", [None, "next", 10, 12, FAR_OFF])
def test_reader_starts_at_the_end_by_default(channel: Channel, name: str, where: object) -> None:
    filled(channel, name, 10)
    fields: Fields = {} if where is None else {"stream_offset": where}
    read(channel, name, **fields)
    put(channel, name, *numbered(4, 10))
    first = 12 if where == 12 else 10
    assert [offset(channel.content()) for _ in range(first, 14)] == list(range(first, 14))


def test_last_is_the_last_chunk(channel: Channel, name: str) -> None:
    filled(channel, name, 10)
    put(channel, name, b"alone")
    read(channel, name, stream_offset="last")
    message = channel.content()
    first = offset(message)
    rest = [offset(channel.content()) for _ in range(first + 1, 11)]
    assert [first, *rest] == list(range(first, 11))
    assert first > 0


@pytest.mark.differs("begins at the first for each")
@pytest.mark.parametrize(("where", "first"), [(-1, 9), (-4, 6), (-10, 0), (-100, 0)])
def test_offset_from_the_end(channel: Channel, name: str, where: int, first: int) -> None:
    filled(channel, name, 10)
    read(channel, name, stream_offset=where)
    assert [offset(channel.content()) for _ in range(first, 10)] == list(range(first, 10))


@pytest.mark.differs("closes the connection with 541 for some, and has no filters")
@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(
            ("x-stream-offset", value)
            for value in ("sometime", "", "5", "1x", "h", 2.5, True, {"a": 1}, None)
        ),
        ("x-stream-filter", 5),
        ("x-stream-filter", [5]),
        ("x-stream-match-unfiltered", "yes"),
    ],
)
def test_invalid_consumer_argument_is_refused(
    channel: Channel, name: str, argument: str, value: object
) -> None:
    declare(channel, name)
    channel.call("Basic.Qos", prefetch_count=5)
    channel.send("Basic.Consume", queue=name, arguments={argument: value})
    assert argument in channel.refused(406, culprit="Basic.Consume")
    channel.open()
    assert channel.declare(name, durable=True, passive=True).consumer_count == 0


# Filters


def put_filtered(channel: Channel, name: str, *messages: tuple[bytes, str | None]) -> None:
    for body, value in messages:
        headers = {} if value is None else {"x-stream-filter-value": value}
        put(channel, name, body, headers=headers)


@pytest.mark.differs("3.13 and later have it")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [b"1", b"2", b"3", b"4"]),
        ({"stream_filter": "red"}, [b"1", b"4"]),
        ({"stream_filter": ["red", "blue"]}, [b"1", b"2", b"4"]),
        ({"stream_filter": "red", "stream_match_unfiltered": True}, [b"1", b"3", b"4"]),
        ({"stream_filter": "red", "stream_match_unfiltered": False}, [b"1", b"4"]),
    ],
)
def test_filter(channel: Channel, name: str, arguments: Fields, expected: list[bytes]) -> None:
    declare(channel, name)
    put_filtered(channel, name, (b"1", "red"), (b"2", "blue"), (b"3", None), (b"4", "red"))
    read(channel, name, stream_offset="first", **arguments)
    assert channel.bodies(len(expected)) == expected


# Retention


SEGMENT_BYTES = 10_000


@pytest.mark.differs("leaves gaps in the offsets")
def test_length_in_bytes_drops_whole_segments(channel: Channel, name: str) -> None:
    declare(
        channel, name, x_max_length_bytes=3 * SEGMENT_BYTES,
        x_stream_max_segment_size_bytes=SEGMENT_BYTES,
    )  # fmt: skip
    for first in range(0, 100, 10):
        put(channel, name, *(body.ljust(1000) for body in numbered(10, first)))
    read(channel, name, stream_offset="first")
    first = offset(channel.content())
    assert 40 <= first < 100
    rest = [offset(channel.content()) for _ in range(first + 1, 100)]
    assert rest == list(range(first + 1, 100))


def test_delete(channel: Channel, other: Channel, name: str) -> None:
    filled(channel, name, 3)
    tag = read(other, name)
    channel.call("Queue.Delete", queue=name)
    assert other.expect("Basic.Cancel").consumer_tag == tag
    channel.send("Queue.Declare", queue=name, passive=True)
    channel.refused(404)


# With the rest of the broker


@pytest.mark.differs("shows none of them")
def test_streams_accept_dead_letters(channel: Channel, name: str) -> None:
    declare(channel, f"{name}.dead")
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}.dead"}
    channel.declare(name, arguments=letters)
    channel.put(name, b"a")
    tag = channel.taken(name, no_ack=False).method.delivery_tag
    channel.send("Basic.Reject", delivery_tag=tag, requeue=False)
    read(channel, f"{name}.dead", stream_offset="first")
    headers: Any = channel.content().properties.headers
    assert headers["x-death"][0]["reason"] == "rejected"
    assert headers["x-stream-offset"] == 0
