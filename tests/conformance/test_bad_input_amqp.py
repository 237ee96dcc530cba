"""reliability.md section 6: the bad inputs of the AMQP port, by number.

A bystander publishes and gets before and after each: no one else may notice. Numbers that are
missing here are tested with their methods: 1, 2, 20, 22 and 23 in test_s2_connection, 24 in
test_s6_settle, 25 in test_s5_queue, 26 and 32 in test_s1_errors, 28 in test_s5_arguments, 30 in
test_s4_exchange and test_s5_dead_letter, 31 in test_s7_confirm.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from . import frames, raw
from .frames import Raw
from .raw import Channel, Client

Connect = Callable[..., Client]
Dial = Callable[[], Client]
Fields = dict[str, Any]

PATIENCE_S = 25.0
MAX_BODY_BYTES = 16 * 1024 * 1024

_bodies = itertools.count()
silent = pytest.mark.differs("drops a connection that is not open yet without a close")
drops = pytest.mark.differs("drops the connection without a close")


@pytest.fixture(scope="module")
def bystander(amqp_port: int) -> Iterator[Channel]:
    with raw.connect(amqp_port) as client:
        channel = client.channel()
        channel.declare("bystander", exclusive=True)
        yield channel


def _works(bystander: Channel) -> None:
    body = b"%d" % next(_bodies)
    bystander.put("bystander", body)
    assert bystander.drain("bystander") == [body]


@pytest.fixture(autouse=True)
def undisturbed(bystander: Channel) -> Iterator[None]:
    _works(bystander)
    yield
    _works(bystander)


def method_frame(channel: int, method: str, **fields: object) -> bytes:
    return frames.frame(frames.METHOD, channel, frames.method(method, **fields))


def with_arguments(table: bytes) -> bytes:
    """A queue.declare whose argument table is these bytes, its length put in front."""
    arguments = Raw(struct.pack(">I", len(table)) + table)
    return method_frame(1, "Queue.Declare", queue="never", arguments=arguments)


# Before the connection is open


@silent
@pytest.mark.parametrize("announced", [8193, 100_000, 0xFFFFFFFF])
def test_04_large_frame_before_tune(dial: Dial, announced: int) -> None:
    client = dial()
    client.start()
    client.send(struct.pack(">BHI", frames.METHOD, 0, announced) + b"\x00\x0a\x00\x0b")
    client.closed(501)


def test_21_half_a_frame_and_idle(dial: Dial) -> None:
    begun = method_frame(0, "Connection.StartOk", mechanism="PLAIN", response="\0guest\0guest")
    idle = [dial() for _ in range(5)]
    for client, sent in zip(
        idle,
        [b"", b"AMQP", frames.PROTOCOL_HEADER, frames.PROTOCOL_HEADER + begun[:20],
         frames.PROTOCOL_HEADER + begun],
        strict=True,
    ):  # fmt: skip
        client.socket.settimeout(PATIENCE_S)
        client.send(sent)
    for client in idle:
        client.hung_up()


# Frames


@pytest.mark.parametrize("frame_max", [4096, 131_072])
@pytest.mark.parametrize("kind", [frames.METHOD, frames.HEADER, frames.BODY])
def test_03_frame_above_negotiated(connect: Connect, frame_max: int, kind: int) -> None:
    client = connect(frame_max=frame_max)
    client.channel()
    client.send(frames.frame(kind, 1, b"\x00" * (frame_max + 1)))
    client.closed(501)


def test_03_frame_size_that_is_never_sent(channel: Channel) -> None:
    channel.client.send(b"\x01\x00\x01\xff\xff\xff\xff")
    channel.client.closed(501)


@pytest.mark.parametrize(
    "whole",
    [
        frames.heartbeat(),
        method_frame(1, "Basic.Qos"),
        frames.publish_frames(1, routing_key="no one"),
        frames.publish_frames(1, b"body", routing_key="no one"),
        frames.publish_frames(1, b"body", routing_key="no one") * 20,
    ],
    ids=["heartbeat", "method", "header", "body", "twentieth body"],
)
@pytest.mark.parametrize("end", [0, 0xCD, 0xFF])
def test_05_bad_end_octet(channel: Channel, whole: bytes, end: int) -> None:
    channel.client.send(whole[:-1] + bytes([end]))
    channel.client.closed(501)


@pytest.mark.parametrize("kind", [0, 4, 5, 6, 7, 9, 65, 255])
def test_06_unknown_frame_type(channel: Channel, kind: int) -> None:
    channel.client.send(frames.frame(kind, 1, b"x"))
    channel.client.closed(501)


def test_07_heartbeat_on_a_channel(channel: Channel) -> None:
    channel.client.send(frames.heartbeat(1))
    channel.client.closed(505)


def test_08_heartbeat_with_payload(channel: Channel) -> None:
    channel.client.send(frames.frame(frames.HEARTBEAT, 0, b"x"))
    channel.client.closed(501)


def test_09_channel_that_is_not_open(connect: Connect) -> None:
    client = connect(channel_max=5)
    client.send_method("Basic.Qos", 6)
    client.closed(504)


# Content


def test_10_body_before_header(channel: Channel, name: str) -> None:
    channel.send("Basic.Publish", routing_key=name)
    channel.client.send(frames.frame(frames.BODY, 1, b"x"))
    channel.client.closed(505)


@pytest.mark.parametrize("pieces", [[b"12345"], [b"123", b"45"], [b"1", b"2", b"3", b"4" * 9]])
@pytest.mark.differs("takes what is too much for a frame out of order, 505")
def test_11_body_past_the_declared_size(channel: Channel, name: str, pieces: list[bytes]) -> None:
    channel.send("Basic.Publish", routing_key=name)
    channel.client.send(frames.frame(frames.HEADER, 1, frames.content_header(4)))
    for piece in pieces:
        channel.client.send(frames.frame(frames.BODY, 1, piece))
    channel.client.closed(501)


@pytest.mark.parametrize("size", [MAX_BODY_BYTES + 1, 1 << 40, 1 << 63, (1 << 64) - 1])
@pytest.mark.differs("has another limit")
def test_12_body_declared_enormous(channel: Channel, name: str, size: int) -> None:
    channel.declare(name)
    channel.send("Basic.Publish", routing_key=name)
    channel.client.send(frames.frame(frames.HEADER, 1, frames.content_header(size)))
    text = (
        f"PRECONDITION_FAILED - message size {size} is larger than "
        f"configured max size {MAX_BODY_BYTES}"
    )
    channel.client.send(frames.frame(frames.BODY, 1, b"x" * 100_000) * 3)
    channel.refused(406, text, culprit="Basic.Publish")
    channel.open()
    channel.put(name, b"next")
    assert channel.drain(name) == [b"next"]


# Methods and their arguments


@drops
@pytest.mark.parametrize(
    ("channel_number", "index"),
    [(1, (99, 1)), (1, (60, 999)), (1, (20, 99)), (1, (0, 0)), (1, (8, 1)), (0, (10, 99)),
     (0, (99, 10)), (1, (0xFFFF, 0xFFFF))],
)  # fmt: skip
def test_13_unknown_method(channel: Channel, channel_number: int, index: tuple[int, int]) -> None:
    payload = struct.pack(">HH", *index) + b"whatever"
    channel.client.send(frames.frame(frames.METHOD, channel_number, payload))
    channel.client.closed(540, culprit=index)


def _nested_tables(depth: int) -> bytes:
    table = b""
    for _ in range(depth):
        table = b"\x01kF" + struct.pack(">I", len(table)) + table
    return table


def _nested_arrays(depth: int) -> bytes:
    array = b""
    for _ in range(depth):
        array = b"A" + struct.pack(">I", len(array)) + array
    return b"\x01k" + array


@pytest.mark.differs("reads any depth")
@pytest.mark.parametrize("depth", [129, 580, 5000])
@pytest.mark.parametrize("nested", [_nested_tables, _nested_arrays])
def test_14_table_too_deep(channel: Channel, depth: int, nested: Callable[[int], bytes]) -> None:
    channel.client.send(with_arguments(nested(depth)))
    channel.client.closed(502, culprit="Queue.Declare")


@silent
def test_14_table_too_deep_before_login(dial: Dial) -> None:
    table = _nested_tables(580)
    client = dial()
    client.start()
    client.send_method(
        "Connection.StartOk",
        client_properties=Raw(struct.pack(">I", len(table)) + table),
        mechanism="PLAIN",
        response="\0guest\0guest",
    )
    client.closed(502)


@pytest.mark.differs("reads any depth")
def test_14_headers_too_deep(channel: Channel, name: str) -> None:
    table = _nested_tables(580)
    channel.publish(
        b"x", {"headers": Raw(struct.pack(">I", len(table)) + table)}, exchange="amq.headers"
    )
    channel.client.closed(502)


FALSE_LENGTHS: dict[str, bytes] = {
    "array": with_arguments(b"\x01kA" + struct.pack(">I", 100) + b"t\x01"),
    "array of 4 GiB": with_arguments(b"\x01kA\xff\xff\xff\xff"),
    "table": with_arguments(b"\x01kF" + struct.pack(">I", 100)),
    "string": with_arguments(b"\x01kS" + struct.pack(">I", 100) + b"short"),
    "binary": with_arguments(b"\x01kx\x7f\xff\xff\xff"),
    "key": with_arguments(b"\xffkey"),
    "key without a value": with_arguments(b"\x01k"),
    "number": with_arguments(b"\x01kI\x00\x00"),
    "element of an array": with_arguments(b"\x01kA" + struct.pack(">I", 3) + b"I\x00\x00"),
    "arguments": method_frame(
        1, "Queue.Declare", queue="never", arguments=Raw(b"\x00\x00\x00\xff")
    ),
    "no arguments": frames.frame(1, 1, struct.pack(">HH", 50, 10)),
    "name": frames.frame(1, 1, struct.pack(">HHHB", 50, 10, 0, 200) + b"short"),
    "delivery tag": frames.frame(1, 1, struct.pack(">HH", 60, 80) + b"\x00\x00\x00"),
    "publish": frames.frame(1, 1, struct.pack(">HHHB", 60, 40, 0, 9) + b"amq"),
    "content header": method_frame(1, "Basic.Publish")
    + frames.frame(frames.HEADER, 1, frames.content_header(1)[:13]),
    "property list": frames.publish_frames(1, b"", Raw(b"\x00\x00\x00")),
    "no method": frames.frame(1, 1, b"\x00\x3c"),
    "empty method": frames.frame(1, 1, b""),
}


@pytest.mark.differs("drops the connection or answers otherwise")
@pytest.mark.parametrize("data", FALSE_LENGTHS.values(), ids=FALSE_LENGTHS)
def test_15_length_past_the_end(channel: Channel, data: bytes) -> None:
    channel.client.send(data)
    channel.client.closed(502)


@pytest.mark.differs("takes any bytes for a name")
@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("Queue.Declare", {"queue": b"\xff\xfe"}),
        ("Exchange.Declare", {"exchange": b"caf\xe9", "exchange_type": "direct"}),
        ("Queue.Bind", {"queue": "never", "exchange": "amq.direct", "routing_key": b"\xc3"}),
        ("Basic.Consume", {"queue": "never", "consumer_tag": b"\xed\xa0\x80"}),
        ("Queue.Declare", {"arguments": Raw(b"\x00\x00\x00\x04\x01\xfft\x01")}),
    ],
)
def test_16_string_that_is_not_utf8(channel: Channel, method: str, fields: Fields) -> None:
    channel.send(method, **fields)
    channel.client.closed(502, culprit=method)


@pytest.mark.differs("takes any bytes for a key")
@pytest.mark.parametrize("field", ["exchange", "routing_key"])
def test_16_publish_to_a_key_that_is_not_utf8(channel: Channel, field: str) -> None:
    fields: Fields = {field: b"\xff"}
    channel.publish(b"x", **fields)
    channel.client.closed(502, culprit="Basic.Publish")


@drops
@pytest.mark.parametrize("tag", [b"Z", b"\x00", b"\xff", b"U"])
def test_18_unknown_tag(channel: Channel, tag: bytes) -> None:
    channel.client.send(with_arguments(b"\x01k" + tag + b"\x00" * 8))
    channel.client.closed(502, culprit="Queue.Declare")


@pytest.mark.differs("takes the first")
@pytest.mark.parametrize(
    "pairs",
    [b"\x01kt\x00\x01at\x00\x01kt\x01", b"\x01kF\x00\x00\x00\x08\x01kt\x00\x01kt\x01"],
    ids=["arguments", "nested table"],
)
def test_19_duplicate_key(channel: Channel, pairs: bytes) -> None:
    channel.client.send(with_arguments(pairs))
    channel.client.closed(502, culprit="Queue.Declare")


# What is well formed and still wrong


@pytest.mark.differs("takes any length")
@pytest.mark.parametrize(
    ("method", "argument", "others"),
    [
        ("Queue.Declare", "x-dead-letter-exchange", {}),
        ("Queue.Declare", "x-dead-letter-routing-key", {"x-dead-letter-exchange": ""}),
        ("Exchange.Declare", "alternate-exchange", {}),
    ],
)
def test_27_derived_name_too_long(
    channel: Channel, name: str, method: str, argument: str, others: Fields
) -> None:
    kind = method.split(".")[0].lower()
    fields: Fields = {kind: name, "arguments": {argument: "n" * 256} | others}
    if kind == "exchange":
        fields["exchange_type"] = "direct"
    channel.send(method, **fields)
    assert argument in channel.refused(406, culprit=method)
    channel.open()
    channel.send(method, passive=True, **fields)
    channel.refused(404)


@pytest.mark.parametrize("stray", ["x-ha-policy", "x-anything", "anything", "x-"])
def test_29_unknown_argument(channel: Channel, name: str, stray: str) -> None:
    channel.declare(name, arguments={stray: "all"})
    channel.put(name, b"a")
    assert channel.drain(name) == [b"a"]
    channel.send("Queue.Declare", queue=f"{name}.2", arguments={stray: "all", "x-max-length": -1})
    assert "'x-max-length'" in channel.refused(406, culprit="Queue.Declare")
