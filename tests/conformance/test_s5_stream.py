"""amqp.md section 5: stream queues - reading without taking, from anywhere."""

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
    """Begins to read; `arguments` are those of the consumer, without their `x-`. Gives the tag."""
    given = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    channel.call("Basic.Qos", prefetch_count=prefetch)
    return channel.consume(name, arguments=given)


def offset(message: Content) -> int:
    headers: Any = message.properties.headers
    return int(headers["x-stream-offset"])


# Declare


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, "non-durable"),
        ({"durable": True, "exclusive": True}, "exclusive-owner"),
        ({"durable": True, "auto_delete": True}, "auto-delete"),
    ],
)
def test_property_that_it_can_not_have(
    channel: Channel, name: str, fields: Fields, wrong: str
) -> None:
    channel.send("Queue.Declare", queue=name, arguments=STREAM, **fields)
    channel.refused(
        406,
        f"PRECONDITION_FAILED - invalid property '{wrong}' for queue '{name}' in vhost '/'",
        "Queue.Declare",
    )


def test_name_is_needed(channel: Channel) -> None:
    channel.send("Queue.Declare", queue="", durable=True, arguments=STREAM)
    channel.refused(
        406,
        "PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_stream_queue",
    )


@pytest.mark.parametrize("age", ["1Y", "2M", "7D", "12h", "90m", "3600s"])
def test_ages(channel: Channel, name: str, age: str) -> None:
    declare(channel, name, x_max_age=age)
    declare(channel, name, x_max_age=age)
    channel.call("Queue.Delete", queue=name)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("x-message-ttl", 1000), ("x-expires", 1000), ("x-max-length", 5),
        ("x-overflow", "drop-head"), ("x-dead-letter-exchange", "d"), ("x-max-priority", 5),
        ("x-single-active-consumer", True), ("x-delivery-limit", 5),
    ],
)  # fmt: skip
def test_arguments_of_other_types(
    channel: Channel, name: str, argument: str, value: object
) -> None:
    channel.send("Queue.Declare", queue=name, durable=True, arguments=STREAM | {argument: value})
    text = channel.refused(406)
    assert text.startswith(
        f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{name}' in vhost '/'"
    )


# What streams don't do


@pytest.mark.parametrize(
    ("method", "fields", "what"),
    [
        ("Basic.Get", {"no_ack": True}, "basic.get"),
        ("Basic.Get", {"no_ack": False}, "basic.get"),
        ("Queue.Purge", {}, "queue.purge"),
    ],
)
def test_not_implemented(
    channel: Channel, name: str, method: str, fields: Fields, what: str
) -> None:
    declare(channel, name)
    channel.send(method, queue=name, **fields)
    text = channel.client.closed(540, culprit=method)
    assert text.startswith(f"NOT_IMPLEMENTED - {what} ")
    assert f"queue '{name}' in vhost '/'" in text


def test_prefetch_is_needed(channel: Channel, name: str) -> None:
    declare(channel, name)
    channel.send("Basic.Consume", queue=name)
    text = channel.refused(406, culprit="Basic.Consume")
    assert text.startswith("PRECONDITION_FAILED - consumer prefetch count is not set for ")
    assert f"queue '{name}' in vhost '/'" in text


def test_acks_are_needed(channel: Channel, name: str) -> None:
    declare(channel, name)
    channel.call("Basic.Qos", prefetch_count=5)
    channel.send("Basic.Consume", queue=name, no_ack=True)
    text = channel.client.closed(540, culprit="Basic.Consume")
    assert f"queue '{name}' in vhost '/'" in text


# Reading


def test_reading_takes_nothing_away(channel: Channel, other: Channel, name: str) -> None:
    """Each reader gets all, acked by others or not."""
    bodies = filled(channel, name, 5)
    for reader in (channel, other, channel):
        tag = read(reader, name, stream_offset="first")
        assert reader.bodies(5) == bodies
        reader.send("Basic.Ack", delivery_tag=0, multiple=True)
        reader.call("Basic.Cancel", consumer_tag=tag)


def test_each_message_carries_its_offset(channel: Channel, name: str) -> None:
    """Beside the headers that it was published with."""
    declare(channel, name)
    put(channel, name, *numbered(3), headers={"own": "a"}, message_id="m")
    read(channel, name, stream_offset="first")
    messages = [channel.content() for _ in range(3)]
    assert [message.properties.headers for message in messages] == [
        {"own": "a", "x-stream-offset": number} for number in range(3)
    ]
    assert {message.properties.message_id for message in messages} == {"m"}
    assert not any(message.method.redelivered for message in messages)


def test_all_readers_get_what_is_new(channel: Channel, other: Channel, name: str) -> None:
    """LavinMQ #1243: some of several readers were not told at once."""
    declare(channel, name)
    readers = [other.client.channel(number) for number in range(2, 7)]
    for reader in readers:
        read(reader, name)
    put(channel, name, *numbered(3))
    assert [reader.bodies(3) for reader in readers] == [numbered(3)] * 5


@pytest.mark.differs("sends some more than the prefetch")
def test_acks_are_credit(channel: Channel, name: str) -> None:
    bodies = filled(channel, name, 6)
    read(channel, name, prefetch=2, stream_offset="first")
    assert channel.bodies(2) == bodies[:2]
    channel.call("Basic.Qos", prefetch_count=2)
    channel.send("Basic.Ack", delivery_tag=1)
    assert channel.bodies(1) == bodies[2:3]
    channel.call("Basic.Qos", prefetch_count=2)
    channel.send("Basic.Ack", delivery_tag=3, multiple=True)
    assert channel.bodies(2) == bodies[3:5]


def test_unacked_come_to_a_new_reader_as_any_other(
    channel: Channel, other: Channel, name: str
) -> None:
    """There is no requeue: who reads again says from where."""
    bodies = filled(channel, name, 3)
    read(channel, name, stream_offset="first")
    channel.bodies(3)
    channel.close()
    read(other, name, stream_offset="first")
    messages = [other.content() for _ in range(3)]
    assert [message.body for message in messages] == bodies
    assert not any(message.method.redelivered for message in messages)


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
        (frames.Raw(b"T" + struct.pack(">Q", int(time.time()) - DAY_S)), 0),
    ],
)
def test_offset(channel: Channel, name: str, where: object, first: int) -> None:
    filled(channel, name, 10)
    read(channel, name, stream_offset=where)
    messages = [channel.content() for _ in range(first, 10)]
    assert [offset(message) for message in messages] == list(range(first, 10))
    assert [message.body for message in messages] == numbered(10 - first, first)


@pytest.mark.parametrize("fields", [{}, {"stream_offset": "next"}, {"stream_offset": 10}])
def test_offset_of_what_comes_next(channel: Channel, name: str, fields: Fields) -> None:
    """That is what a reader gets who says nothing (LavinMQ #1293)."""
    filled(channel, name, 10)
    read(channel, name, **fields)
    put(channel, name, b"new")
    message = channel.content()
    assert (message.body, offset(message)) == (b"new", 10)


def test_offset_that_is_not_reached_yet(channel: Channel, name: str) -> None:
    """What comes meanwhile is passed over."""
    filled(channel, name, 3)
    read(channel, name, stream_offset=5)
    put(channel, name, *numbered(4, 3))
    assert [offset(channel.content()) for _ in range(2)] == [5, 6]


def test_offset_in_time_that_is_to_come(channel: Channel, name: str) -> None:
    filled(channel, name, 3)
    read(
        channel, name, stream_offset=frames.Raw(b"T" + struct.pack(">Q", int(time.time()) + DAY_S))
    )
    put(channel, name, b"new")
    assert channel.content().body == b"new"


def test_last_is_the_last_chunk(channel: Channel, name: str) -> None:
    """At least the last message, and nothing but the end of the stream."""
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


@pytest.mark.differs("closes the connection with 541 for some")
@pytest.mark.parametrize("where", ["sometime", "", "5", "1x", "h", 2.5, True, {"a": 1}, None])
def test_offset_that_is_none(channel: Channel, name: str, where: object) -> None:
    """Nothing is guessed: a stream read from a wrong place looks like one that is right."""
    declare(channel, name)
    channel.call("Basic.Qos", prefetch_count=5)
    channel.send("Basic.Consume", queue=name, arguments={"x-stream-offset": where})
    assert "x-stream-offset" in channel.refused(406, culprit="Basic.Consume")
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
    """The last message matches each filter: nothing else may come before it."""
    declare(channel, name)
    put_filtered(channel, name, (b"1", "red"), (b"2", "blue"), (b"3", None), (b"4", "red"))
    read(channel, name, stream_offset="first", **arguments)
    assert channel.bodies(len(expected)) == expected


@pytest.mark.differs("3.13 and later have it")
@pytest.mark.parametrize(
    ("argument", "value"),
    [("x-stream-filter", 5), ("x-stream-filter", [5]), ("x-stream-match-unfiltered", "yes")],
)
def test_filter_that_is_none(channel: Channel, name: str, argument: str, value: object) -> None:
    declare(channel, name)
    channel.call("Basic.Qos", prefetch_count=5)
    channel.send("Basic.Consume", queue=name, arguments={argument: value})
    assert argument in channel.refused(406, culprit="Basic.Consume")


# Retention


SEGMENT_BYTES = 10_000


@pytest.mark.differs("leaves gaps in the offsets")
def test_length_in_bytes_drops_whole_segments(channel: Channel, name: str) -> None:
    """The oldest; offsets go on."""
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


def test_declared_again_is_empty(channel: Channel, name: str) -> None:
    filled(channel, name, 3)
    channel.call("Queue.Delete", queue=name)
    declare(channel, name)
    put(channel, name, b"new")
    read(channel, name, stream_offset="first")
    message = channel.content()
    assert (message.body, offset(message)) == (b"new", 0)


# With the rest of the broker


def test_it_is_bound_like_any_queue(channel: Channel, name: str) -> None:
    declare(channel, name)
    channel.call("Queue.Bind", queue=name, exchange="amq.topic", routing_key=f"{name}.#")
    read(channel, name, stream_offset="first")
    channel.publish(b"a", exchange="amq.topic", routing_key=f"{name}.x.y")
    method = channel.content().method
    assert (method.exchange, method.routing_key) == ("amq.topic", f"{name}.x.y")


def test_expiration_and_priority_mean_nothing(channel: Channel, name: str) -> None:
    declare(channel, name)
    put(channel, name, b"a", expiration="0", priority=1)
    put(channel, name, b"b", priority=9)
    read(channel, name, stream_offset="first")
    assert channel.bodies(2) == [b"a", b"b"]


@pytest.mark.differs("shows none of them")
def test_dead_letters_go_into_streams(channel: Channel, name: str) -> None:
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
