"""amqp.md section 6: publish, return, the copies of CC and BCC."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.process import wait_until

from . import frames
from .frames import Raw
from .raw import Channel, Client

Fields = dict[str, Any]
Connect = Callable[..., Client]


PROPERTIES: Fields = {
    "content_type": "application/atom+xml",
    "content_encoding": "utf-8",
    "headers": {"a": "b", "n": -5, "big": 1 << 40, "flag": True, "list": [1, "x"], "in": {"t": 1}},
    "delivery_mode": 2,
    "priority": 7,
    "correlation_id": "c",
    "reply_to": "r",
    "expiration": "3600000",
    "message_id": "m",
    "timestamp": 1_700_000_000,
    "message_type": "t",
    "user_id": "guest",
    "app_id": "app",
    "cluster_id": "cluster",
}


@pytest.mark.parametrize("chosen", [[], *([key] for key in PROPERTIES), list(PROPERTIES)])
def test_properties_arrive_as_sent(channel: Channel, name: str, chosen: list[str]) -> None:
    """By get and by delivery alike."""
    sent = {key: PROPERTIES[key] for key in chosen}
    channel.declare(name)
    for _ in range(2):
        channel.publish(b"a", sent, routing_key=name)
    first = channel.taken(name).properties
    channel.consume(name, no_ack=True)
    for properties in (first, channel.content().properties):
        got: Fields = dict(properties)
        if "timestamp" in sent:
            got["timestamp"] = int(got["timestamp"].timestamp())
        assert {key: value for key, value in got.items() if value} == sent


@pytest.mark.parametrize("size", [0, 1, 4087, 4088, 4089, 131_064, 131_065, 1_000_000])
@pytest.mark.parametrize("frame_max", [4096, 131_072])
def test_body_arrives_as_sent(connect: Connect, name: str, size: int, frame_max: int) -> None:
    channel = connect(frame_max=frame_max).channel()
    body = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    channel.declare(name)
    channel.consume(name, no_ack=True)
    channel.publish(body, routing_key=name)
    assert channel.content().body == body
    channel.publish(b"next", routing_key=name)
    assert channel.content().body == b"next"


@pytest.mark.parametrize("pieces", [[1] * 5, [0, 5], [2, 0, 3], [4, 1]])
def test_body_in_odd_frames(channel: Channel, name: str, pieces: list[int]) -> None:
    """Empty body frames are legal; content ends with the last byte that was announced."""
    channel.declare(name)
    body = iter(b"12345")
    channel.send("Basic.Publish", routing_key=name)
    channel.client.send(frames.frame(frames.HEADER, 1, frames.content_header(5)))
    for size in pieces:
        piece = bytes(next(body) for _ in range(size))
        channel.client.send(frames.frame(frames.BODY, 1, piece))
    assert channel.taken(name).body == b"12345"


def test_contents_of_channels_interleave(client: Client, name: str) -> None:
    channels = [client.channel(number) for number in (1, 2, 3)]
    channels[0].declare(name)
    for channel in channels:
        channel.send("Basic.Publish", routing_key=name)
    for channel in channels:
        header = frames.content_header(6, {"app_id": str(channel.number)})
        client.send(frames.frame(frames.HEADER, channel.number, header))
    for half in (b"abc", b"def"):
        for channel in reversed(channels):
            client.send(frames.frame(frames.BODY, channel.number, half))
    for channel in channels:
        channel.ready(name)
    taken = [channels[0].taken(name) for _ in channels]
    assert {message.properties.app_id for message in taken} == {"1", "2", "3"}
    assert {message.body for message in taken} == {b"abcdef"}


def test_returned_message_is_complete(channel: Channel) -> None:
    fields = {"exchange": "amq.direct", "routing_key": "no one", "mandatory": True}
    channel.publish(b"lost" * 100_000, {"app_id": "a"}, **fields)
    message = channel.content("Basic.Return")
    method = message.method
    assert (method.reply_code, method.reply_text) == (312, "NO_ROUTE")
    assert (method.exchange, method.routing_key) == ("amq.direct", "no one")
    assert (message.properties.app_id, message.body) == ("a", b"lost" * 100_000)


@pytest.mark.differs("refuses immediate with 540")
def test_immediate_needs_a_ready_consumer(channel: Channel, name: str) -> None:
    def returned(key: str, **fields: Any) -> int:
        channel.publish(b"a", routing_key=key, immediate=True, **fields)
        message = channel.content("Basic.Return")
        assert message.body == b"a"
        code: int = message.method.reply_code
        return code

    channel.declare(name)
    assert returned(name) == returned(f"{name}.no") == 313
    assert returned(f"{name}.no", mandatory=True) == 312
    channel.call("Basic.Qos", prefetch_count=1)
    channel.consume(name)
    channel.publish(b"b", routing_key=name, immediate=True)
    assert channel.content().body == b"b"
    assert returned(name) == 313
    assert channel.ready(name) == 0


@pytest.mark.differs("refuses immediate with 540")
def test_immediate_tries_the_alternate_exchange(channel: Channel, name: str) -> None:
    """A queue without a ready consumer counts as no route."""
    alternate, queues = f"{name}.ae", (f"{name}.1", f"{name}.2")
    channel.call("Exchange.Declare", exchange=alternate, exchange_type="fanout")
    arguments = {"alternate-exchange": alternate}
    channel.call("Exchange.Declare", exchange=name, exchange_type="fanout", arguments=arguments)
    for queue, exchange in zip(queues, (name, alternate), strict=True):
        channel.declare(queue)
        channel.call("Queue.Bind", queue=queue, exchange=exchange)
    channel.publish(b"nobody", exchange=name, immediate=True)
    assert channel.content("Basic.Return").method.reply_code == 313
    channel.consume(queues[1], no_ack=True)
    channel.publish(b"somebody", exchange=name, immediate=True)
    assert channel.content().body == b"somebody"
    assert channel.ready(queues[0]) == 0


@pytest.mark.differs("refuses immediate with 540")
def test_immediate_reaches_only_queues_with_a_ready_consumer(channel: Channel, name: str) -> None:
    ready, idle = f"{name}.ready", f"{name}.idle"
    channel.declare(ready)
    channel.declare(idle)
    channel.consume(ready, no_ack=True)
    channel.publish(b"a", {"headers": {"CC": [idle]}}, routing_key=ready, immediate=True)
    assert channel.content().body == b"a"
    assert channel.ready(idle) == 0


@pytest.mark.differs("has 128 MiB")
def test_largest_body(channel: Channel, name: str) -> None:
    largest = 16 * 1024 * 1024
    channel.declare(name)
    channel.publish(b"x" * largest, routing_key=name)
    assert len(channel.taken(name).body) == largest
    channel.publish(b"x" * (largest + 1), routing_key=name)
    channel.refused(
        406,
        f"PRECONDITION_FAILED - message size {largest + 1} is larger than "
        f"configured max size {largest}",
        culprit="Basic.Publish",
    )
    channel.open()
    assert channel.ready(name) == 0


ABSENT, TRACE = "no such exchange", "amq.rabbitmq.trace"
BAD_EXPIRATION, BAD_USER, BAD_COPIES = (
    {"expiration": "soon"}, {"user_id": "somebody"}, {"headers": {"CC": "no array"}},
)  # fmt: skip
TOO_LARGE = 1 << 30
IN_ORDER: list[tuple[str, int, Fields, int, str]] = [
    (ABSENT, TOO_LARGE, BAD_EXPIRATION | BAD_USER, 404, "no exchange"),
    ("", TOO_LARGE, BAD_EXPIRATION, 406, "message size"),
    (TRACE, 0, BAD_EXPIRATION | BAD_USER, 403, "cannot publish to internal exchange"),
    ("", 0, BAD_EXPIRATION | BAD_USER | BAD_COPIES, 406, "invalid expiration 'soon'"),
    ("", 0, BAD_USER | BAD_COPIES, 406, "user_id property set to 'somebody'"),
]


@pytest.mark.differs(
    "has another limit, looks at the size before the exchange and at the user before the expiration"
)
@pytest.mark.parametrize(("exchange", "size", "properties", "code", "text"), IN_ORDER)
def test_the_first_fault_is_reported(
    channel: Channel, exchange: str, size: int, properties: Fields, code: int, text: str
) -> None:
    """Size, right, exchange, internal, expiration, user, route; the size by the header alone."""
    channel.send("Basic.Publish", exchange=exchange)
    header = frames.content_header(size, properties)
    channel.client.send(frames.frame(frames.HEADER, channel.number, header))
    assert f" - {text}" in channel.refused(code, culprit="Basic.Publish")


def test_user_id(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.put(name, b"a", properties={"user_id": "guest"})
    channel.publish(b"b", {"user_id": "other"}, routing_key=name)
    text = "user_id property set to 'other' but authenticated user was 'guest'"
    channel.refused(406, f"PRECONDITION_FAILED - {text}", culprit="Basic.Publish")
    channel.open()
    assert channel.drain(name) == [b"a"]


# CC and BCC


def test_copies(channel: Channel, name: str) -> None:
    """One copy a queue whatever the keys; BCC is not shown to anyone."""
    queues = [f"{name}.{letter}" for letter in "abc"]
    for queue in queues:
        channel.declare(queue)
    headers = {"CC": [queues[0], queues[1]], "BCC": [queues[2], queues[1]], "own": 1}
    channel.publish(b"x", {"headers": headers}, routing_key=queues[0])
    for queue in queues:
        message = channel.taken(queue)
        assert message.properties.headers == {"CC": [queues[0], queues[1]], "own": 1}
        assert message.method.routing_key == queues[0]
        assert channel.ready(queue) == 0


def test_copies_count_as_routed(channel: Channel, name: str) -> None:
    channel.declare(name)
    headers = {"BCC": [name]}
    channel.publish(b"x", {"headers": headers}, routing_key=f"{name}.no", mandatory=True)
    assert not channel.taken(name).properties.headers


@pytest.mark.parametrize("header", ["CC", "BCC"])
def test_copies_go_to_the_strings_of_an_array(channel: Channel, name: str, header: str) -> None:
    channel.declare(name)
    channel.publish(b"x", {"headers": {header: [5, name]}}, routing_key=f"{name}.no")
    assert channel.taken(name).body == b"x"


@pytest.mark.parametrize("header", ["CC", "BCC"])
@pytest.mark.parametrize("value", ["key", 5, {"a": "b"}])
def test_cc_and_bcc_must_be_arrays(channel: Channel, name: str, header: str, value: object) -> None:
    channel.declare(name)
    channel.publish(b"x", {"headers": {header: value}}, routing_key=name)
    channel.refused(406, culprit="Basic.Publish")
    channel.open()
    assert channel.ready(name) == 0


def _table(*entries: bytes) -> Raw:
    return Raw(frames.long_string(b"".join(entries)))


def _deep(levels: int) -> Raw:
    table = frames.long_string(b"")
    for _ in range(levels - 1):
        table = frames.long_string(b"\x01tF" + table)
    return Raw(table)


EARLY = b"T" + struct.pack(">q", -86_400)
"""31 December 1969, as the Java client writes it."""
UNUSUAL_TABLES = {
    "a time before 1970": _table(b"\x01t" + EARLY),
    "a nested one": _table(b"\x01tF" + frames.long_string(b"\x01t" + EARLY)),
    "one in an array": _table(b"\x01tA" + frames.long_string(EARLY * 2)),
    "the earliest one": _table(b"\x01tT\x80" + bytes(7)),
    "all bits": _table(b"\x01tT" + b"\xff" * 8),
    "milliseconds": _table(b"\x01tT" + struct.pack(">q", 1_700_000_000_000)),
    "the least decimal": _table(b"\x01dD\x02\x80\x00\x00\x00"),
    "64 bits without a sign": _table(b"\x01lL" + b"\xff" * 8),
    "3,000 entries": _table(*(b"\x05%05dI%b" % (number, bytes(4)) for number in range(3_000))),
    "3,000 times": _table(*(b"\x05%05d%b" % (number, EARLY) for number in range(3_000))),
    "128 levels as an argument": _deep(127),
}


@pytest.mark.parametrize("table", UNUSUAL_TABLES.values(), ids=UNUSUAL_TABLES.keys())
def test_tables_pass_through_as_they_are(channel: Channel, name: str, table: Raw) -> None:
    """As arguments, which are compared, and as headers: twice, for a structure that is known
    already, then of a dead letter."""
    grave = str(channel.declare(exclusive=True).queue)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave}
    for _ in range(2):
        channel.declare(name, arguments={**arguments, "own": Raw(b"F" + table.content)})
    for queue, properties in ((name, {}), (name, {}), (grave, {"expiration": "0"})):
        channel.publish(b"x", {"headers": table, **properties}, routing_key=name)
        wait_until(lambda queue=queue: channel.ready(queue) > 0, 30.0, "the message")  # type: ignore[misc]
        channel.client.send_method("Basic.Get", 1, queue=queue, no_ack=True)
        _, header, _ = (channel.client.receive_raw(1)[1] for _ in range(3))
        assert table.content[4:] in header
