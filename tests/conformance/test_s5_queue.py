"""amqp.md section 5: declaring, binding, purging and deleting queues."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from . import frames
from .raw import Channel, Client

Fields = dict[str, Any]
Connect = Callable[..., Client]

LOCKED = (
    "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{n}' in vhost '/'. It "
    "could be originally declared on another connection or the exclusive property value does "
    "not match that of the original declaration."
)
NO_LAST = "NOT_FOUND - no previously declared queue"


# Names


def test_server_names(channel: Channel) -> None:
    names = [channel.declare("").queue for _ in range(3)]
    assert len(set(names)) == 3
    assert all(re.fullmatch(r"amq\.gen-[A-Za-z0-9_-]{22}", name) for name in names)


def test_reserved_prefix(channel: Channel, name: str) -> None:
    channel.send("Queue.Declare", queue=f"amq.{name}")
    channel.refused(
        403, f"ACCESS_REFUSED - queue name 'amq.{name}' contains reserved prefix 'amq.*'"
    )


def test_passive_declare_accepts_a_reserved_name(channel: Channel) -> None:
    name = channel.declare("").queue
    assert channel.declare(name, passive=True).queue == name
    channel.send("Queue.Declare", queue=name)
    channel.refused(403, f"ACCESS_REFUSED - queue name '{name}' contains reserved prefix 'amq.*'")


@pytest.mark.differs("strips line ends from names, and takes a NUL")
@pytest.mark.parametrize("letter", ["\r", "\n", "\0"])
def test_line_end_in_a_name(channel: Channel, name: str, letter: str) -> None:
    channel.send("Queue.Declare", queue=f"{name}{letter}x")
    channel.refused(406)


@pytest.mark.parametrize("name", ["q" * 255, "\N{SNOWMAN}" * 85, "a b/c%2F?#", "'\"\\"])
def test_any_other_name_is_fine(channel: Channel, name: str) -> None:
    assert channel.declare(name, exclusive=True).queue == name


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("Queue.Bind", {"exchange": "amq.fanout"}),
        ("Queue.Unbind", {"exchange": "amq.fanout"}),
        ("Queue.Purge", {}),
        ("Queue.Delete", {}),
        ("Basic.Consume", {}),
        ("Basic.Get", {}),
    ],
)
def test_empty_name_means_the_last_declared_queue(
    channel: Channel, method: str, fields: Fields
) -> None:
    channel.declare("")
    name = channel.declare("").queue
    if method == "Basic.Get":
        channel.put(name, b"a")
        assert channel.taken("").body == b"a"
        return
    reply = channel.call(method, queue="", **fields)
    assert getattr(reply, "queue", name) == name


@pytest.mark.parametrize("method", ["Queue.Bind", "Queue.Purge", "Basic.Consume", "Basic.Get"])
def test_empty_name_is_refused_before_a_declaration(channel: Channel, method: str) -> None:
    channel.send(method, **({"exchange": "amq.fanout"} if method == "Queue.Bind" else {}))
    channel.refused(404, NO_LAST, culprit=method)


def test_empty_name_and_key_bind_by_the_queue_name(channel: Channel) -> None:
    name = channel.declare("").queue
    channel.call("Queue.Bind", queue="", exchange="amq.direct", routing_key="")
    channel.publish(b"a", exchange="amq.direct", routing_key=name)
    assert channel.taken(name).body == b"a"


# Declare


def test_reply_counts_ready_and_consumers(channel: Channel, name: str) -> None:
    reply = channel.declare(name)
    assert (reply.queue, reply.message_count, reply.consumer_count) == (name, 0, 0)
    channel.put(name, b"a", b"b", b"c")
    channel.taken(name, no_ack=False)
    channel.call("Basic.Qos", prefetch_count=1)
    channel.consume(name)
    channel.content()
    reply = channel.declare(name)
    assert (reply.message_count, reply.consumer_count) == (1, 1)


INEQUIVALENT: list[tuple[Fields, Fields, str]] = [
    ({}, {"durable": True}, "'durable' {}: received 'true' but current is 'false'"),
    ({"durable": True}, {}, "'durable' {}: received 'false' but current is 'true'"),
    ({}, {"auto_delete": True}, "'auto_delete' {}: received 'true' but current is 'false'"),
    (
        {}, {"arguments": {"x-max-length": 5}},
        "'x-max-length' {}: received the value '5' of type 'signedint' but current is none",
    ),
    (
        {"arguments": {"x-dead-letter-exchange": "d"}}, {},
        "'x-dead-letter-exchange' {}: received none but current is "
        "the value 'd' of type 'longstr'",
    ),
    (
        {"arguments": {"x-message-ttl": 60_000}}, {"arguments": {"x-message-ttl": 60_001}},
        "'x-message-ttl' {}: received '60001' but current is '60000'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "text"), INEQUIVALENT)
def test_inequivalent_redeclaration_is_refused(
    channel: Channel, name: str, first: Fields, second: Fields, text: str
) -> None:
    channel.declare(name, **first)
    channel.declare(name, **first)
    channel.send("Queue.Declare", queue=name, **second)
    where = f"for queue '{name}' in vhost '/'"
    channel.refused(
        406, f"PRECONDITION_FAILED - inequivalent arg {text.format(where)}", "Queue.Declare"
    )


TYPES: list[tuple[bytes, str, str]] = [
    (b"S" + frames.long_string("5"), "5", "longstr"),
    (b"I\x00\x00\x00\x05", "5", "signedint"),
    (b"l" + bytes(7) + b"\x05", "5", "long"),
    (b"s\x00\x05", "5", "short"),
    (b"b\x05", "5", "byte"),
    (b"t\x01", "true", "bool"),
]


@pytest.mark.parametrize(("octets", "shown", "kind"), TYPES)
def test_error_names_the_received_type(
    channel: Channel, name: str, octets: bytes, shown: str, kind: str
) -> None:
    channel.declare(name)
    arguments = {"x-max-length": frames.Raw(octets)}
    channel.send("Queue.Declare", queue=name, arguments=arguments)
    channel.refused(
        406,
        f"PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue '{name}' in vhost '/': "
        f"received the value '{shown}' of type '{kind}' but current is none",
    )


DIFFERENCES: list[tuple[Fields, str]] = [
    ({"durable": True}, "durable"),
    ({"auto_delete": True}, "auto_delete"),
    ({"arguments": {"x-max-length": 5}}, "x-max-length"),
]


@pytest.mark.parametrize("first", range(len(DIFFERENCES)))
def test_first_difference_is_reported(
    channel: Channel, other: Channel, name: str, first: int
) -> None:
    differing: Fields = {}
    for fields, _ in DIFFERENCES[first:]:
        differing |= fields
    channel.declare(name)
    channel.send("Queue.Declare", queue=name, **differing)
    assert f"inequivalent arg '{DIFFERENCES[first][1]}'" in channel.refused(406)
    other.send("Queue.Declare", queue=name, exclusive=True, **differing)
    other.refused(405)


@pytest.mark.parametrize(
    "again", [b"b\x05", b"s\x00\x05", b"I\x00\x00\x00\x05", b"l" + bytes(7) + b"\x05"]
)
def test_numbers_are_compared_by_value(channel: Channel, name: str, again: bytes) -> None:
    channel.declare(name, arguments={"x-max-length": 5})
    channel.declare(name, arguments={"x-max-length": frames.Raw(again)})


@pytest.mark.differs("compares numbers of two types as different")
def test_integers_may_be_sent_as_floating_point_numbers(channel: Channel, name: str) -> None:
    channel.declare(name, arguments={"x-max-length": 5})
    channel.declare(name, arguments={"x-max-length": 5.0})
    channel.send("Queue.Declare", queue=name, arguments={"x-max-length": 5.5})
    channel.refused(406)


@pytest.mark.parametrize("again", [{"x-anything": "a"}, {"x-anything": "b"}, {}, {"more": None}])
def test_unknown_arguments_are_not_compared(
    channel: Channel, name: str, again: dict[str, object]
) -> None:
    channel.declare(name, arguments={"x-anything": "a"})
    channel.declare(name, arguments=again)


def test_nowait_hides_the_answers(channel: Channel, name: str) -> None:
    channel.send("Queue.Declare", queue=name, nowait=True)
    channel.send("Queue.Bind", queue=name, exchange="amq.fanout", nowait=True)
    channel.send("Queue.Purge", queue=name, nowait=True)
    assert channel.declare(name, passive=True).queue == name
    channel.send("Queue.Delete", queue=name, nowait=True)
    channel.send("Queue.Declare", queue=name, passive=True, nowait=True)
    channel.refused(404)


# Exclusive


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("Queue.Declare", {}),
        ("Queue.Declare", {"exclusive": True}),
        ("Queue.Declare", {"passive": True}),
        ("Queue.Declare", {"durable": True}),
        ("Queue.Bind", {"exchange": "amq.fanout"}),
        ("Queue.Purge", {}),
        ("Queue.Delete", {}),
        ("Basic.Consume", {}),
        ("Basic.Get", {}),
    ],
)
def test_exclusive_is_locked_for_others(
    channel: Channel, other: Channel, name: str, method: str, fields: Fields
) -> None:
    channel.declare(name, exclusive=True)
    other.send(method, queue=name, **fields)
    other.refused(405, LOCKED.format(n=name), culprit=method)


@pytest.mark.parametrize("exclusive", [False, True])
def test_exclusive_flag_is_compared(channel: Channel, name: str, exclusive: bool) -> None:
    channel.declare(name, exclusive=exclusive)
    channel.send("Queue.Declare", queue=name, exclusive=not exclusive)
    channel.refused(405, LOCKED.format(n=name))


def test_exclusive_dies_with_its_connection(connect: Connect, channel: Channel, name: str) -> None:
    client = connect()
    client.channel().declare(name, exclusive=True, durable=True)
    client.close()
    channel.send("Queue.Declare", queue=name, passive=True)
    channel.refused(404)


# Auto-delete


def _gone(channel: Channel, name: str) -> None:
    channel.send("Queue.Declare", queue=name, passive=True)
    channel.refused(404)


def test_last_consumer_auto_deletes(channel: Channel, name: str) -> None:
    channel.declare(name, auto_delete=True)
    tags = [channel.consume(name) for _ in range(2)]
    channel.call("Basic.Cancel", consumer_tag=tags[0])
    channel.ready(name)
    channel.call("Basic.Cancel", consumer_tag=tags[1])
    _gone(channel, name)


@pytest.mark.parametrize("how", ["channel close", "channel error", "connection close"])
def test_closing_the_channel_auto_deletes(
    connect: Connect, channel: Channel, name: str, how: str
) -> None:
    client = connect()
    leaving = client.channel()
    leaving.declare(name, auto_delete=True)
    leaving.consume(name)
    match how:
        case "channel close":
            leaving.close()
        case "channel error":
            leaving.send("Basic.Get", queue=f"{name}.absent")
            leaving.refused(404)
            leaving.open()
        case _:
            client.close()
    _gone(channel, name)


def test_get_does_not_auto_delete(channel: Channel, name: str) -> None:
    channel.declare(name, auto_delete=True)
    channel.put(name, b"a")
    channel.taken(name)
    channel.ready(name)


# Delete, purge


def test_delete_counts_ready(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.put(name, b"a", b"b", b"c")
    channel.taken(name, no_ack=False)
    assert channel.call("Queue.Delete", queue=name).message_count == 2
    _gone(channel, name)


def test_delete_absent(channel: Channel, name: str) -> None:
    assert channel.call("Queue.Delete", queue=name).message_count == 0


def test_delete_if_unused(channel: Channel, name: str) -> None:
    channel.declare(name)
    tag = channel.consume(name)
    channel.send("Queue.Delete", queue=name, if_unused=True)
    channel.refused(406, f"PRECONDITION_FAILED - queue '{name}' in vhost '/' in use")
    channel.open()
    channel.call("Basic.Cancel", consumer_tag=tag)
    channel.call("Queue.Delete", queue=name, if_unused=True)


def test_delete_if_empty(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.put(name, b"a")
    channel.send("Queue.Delete", queue=name, if_empty=True)
    channel.refused(406, f"PRECONDITION_FAILED - queue '{name}' in vhost '/' not empty")
    channel.open()
    channel.call("Queue.Purge", queue=name)
    channel.call("Queue.Delete", queue=name, if_empty=True)


def test_delete_ends_bindings_and_acks(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.call("Queue.Bind", queue=name, exchange="amq.direct", routing_key=name)
    channel.put(name, b"a")
    tag = channel.taken(name, no_ack=False).method.delivery_tag
    channel.call("Queue.Delete", queue=name)
    channel.send("Basic.Ack", delivery_tag=tag)
    channel.declare(name)
    channel.publish(b"a", exchange="amq.direct", routing_key=name, mandatory=True)
    assert channel.content("Basic.Return").method.reply_code == 312


def test_purge_removes_ready_messages_only(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.put(name, b"a", b"b", b"c")
    tag = channel.taken(name, no_ack=False).method.delivery_tag
    assert channel.call("Queue.Purge", queue=name).message_count == 2
    channel.send("Basic.Nack", delivery_tag=tag, requeue=True)
    assert channel.taken(name).body == b"a"


# Bind, unbind


def test_unbind(channel: Channel, name: str) -> None:
    channel.declare(name)
    binding = {"queue": name, "exchange": "amq.direct", "routing_key": name}
    for _ in range(2):
        channel.call("Queue.Bind", **binding)
    for _ in range(2):
        channel.call("Queue.Unbind", **binding)
    channel.publish(b"a", exchange="amq.direct", routing_key=name, mandatory=True)
    assert channel.content("Basic.Return").method.reply_code == 312


def test_bindings_differ_by_arguments(channel: Channel, name: str) -> None:
    channel.declare(name)
    binding = {"queue": name, "exchange": "amq.direct", "routing_key": name}
    for value in (1, 2):
        channel.call("Queue.Bind", arguments={"v": value}, **binding)
    channel.call("Queue.Unbind", arguments={"v": 1}, **binding)
    channel.publish(b"a", exchange="amq.direct", routing_key=name)
    assert channel.drain(name) == [b"a"]


@pytest.mark.parametrize("missing", ["queue", "exchange"])
def test_bind_with_a_missing_end(channel: Channel, name: str, missing: str) -> None:
    channel.declare(f"{name}.here")
    ends = {"queue": f"{name}.here", "exchange": "amq.fanout", missing: name}
    channel.call("Queue.Unbind", **ends)
    channel.send("Queue.Bind", **ends)
    channel.refused(404, f"NOT_FOUND - no {missing} '{name}' in vhost '/'", culprit="Queue.Bind")
