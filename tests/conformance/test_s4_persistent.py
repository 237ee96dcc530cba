"""amqp.md section 4: exchanges that store messages - the persistent exchange, recent history."""

from __future__ import annotations

from typing import Any

import pytest

from .raw import Channel

Fields = dict[str, Any]
TEN = [b"%d" % number for number in range(10)]

pytestmark = pytest.mark.differs("has recent history as a plugin, and no persistent exchange")


def declare(channel: Channel, name: str, kind: str = "fanout", **arguments: object) -> str:
    given = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    channel.call("Exchange.Declare", exchange=name, exchange_type=kind, arguments=given)
    return name


def persistent(channel: Channel, name: str, *bodies: bytes, kind: str = "fanout") -> str:
    """An exchange that keeps ten messages; publishes these before anything is bound."""
    declare(channel, name, kind, persist_messages=10)
    for body in bodies:
        channel.publish(body, exchange=name)
    return name


def bind(channel: Channel, source: str, key: str = "", **arguments: object) -> str:
    """A new queue; the arguments are those of the binding."""
    given = {f"x-{key.rstrip('_')}": value for key, value in arguments.items()}
    queue = str(channel.declare("").queue)
    channel.call("Queue.Bind", queue=queue, exchange=source, routing_key=key, arguments=given)
    return queue


# Persistent exchange: the ten-message table


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, []),
        ({"head": 3}, TEN[:3]),
        ({"head": 0}, []),
        ({"head": -3}, TEN[:-3]),
        ({"head": 10}, TEN),
        ({"head": 99}, TEN),
        ({"head": -10}, []),
        ({"head": -99}, []),
        ({"tail": 3}, TEN[-3:]),
        ({"tail": 0}, []),
        ({"tail": -3}, TEN[3:]),
        ({"tail": 10}, TEN),
        ({"tail": 99}, TEN),
        ({"tail": -10}, []),
        ({"tail": -99}, []),
        ({"from_": 0}, TEN),
        ({"from_": 10_000}, TEN),
    ],
)
def test_ten_messages_by_head_tail_and_from(
    channel: Channel, name: str, arguments: Fields, expected: list[bytes]
) -> None:
    """x-head n: the oldest n, -n: all but the last n; x-tail n: the newest n, -n: all but the
    first n; x-from 0 or unknown: all. Then comes what is new."""
    queue = bind(channel, persistent(channel, name, *TEN), **arguments)
    channel.publish(b"new", exchange=name)
    assert channel.drain(queue) == [*expected, b"new"]


def test_reader_that_notes_offsets_binds_again_from_there(channel: Channel, name: str) -> None:
    """Its queue is gone; it continues behind the last offset that it noted."""
    first = bind(channel, persistent(channel, name, *TEN[:4]), from_=0)
    channel.publish(TEN[4], exchange=name)
    noted = 0
    for body in TEN[:3]:
        message = channel.taken(first)
        headers: Any = message.properties.headers
        assert message.body == body
        noted = headers["x-offset"]
    channel.call("Queue.Delete", queue=first)
    channel.publish(TEN[5], exchange=name)
    second = bind(channel, name, from_=noted + 1)
    assert channel.drain(second) == TEN[3:6]


def test_copies_carry_their_offset(channel: Channel, name: str) -> None:
    """Those that are replayed and those that come as they come, in one series."""
    persistent(channel, name)
    for body in TEN[:3]:
        channel.publish(body, {"headers": {"own": 1}}, exchange=name)
    queue = bind(channel, name, head=10)
    channel.publish(TEN[3], exchange=name)
    taken = [channel.taken(queue).properties.headers or {} for _ in range(4)]
    offsets: list[Any] = [headers["x-offset"] for headers in taken]
    assert offsets == list(range(offsets[0], offsets[0] + 4))
    assert [headers.get("own") for headers in taken] == [1, 1, 1, None]


def test_x_persist_messages_limits_the_number(channel: Channel, name: str) -> None:
    declare(channel, name, persist_messages=4)
    for body in TEN:
        channel.publish(body, exchange=name)
    assert channel.drain(bind(channel, name, from_=0)) == TEN[-4:]


def test_x_persist_ms_limits_the_age(channel: Channel, name: str) -> None:
    """The clock is a message that expires after that time."""
    declare(channel, name, persist_ms=100)
    channel.publish(b"old", exchange=name)
    channel.declare(f"{name}.dead")
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}.dead"}
    channel.declare(f"{name}.clock", arguments={"x-message-ttl": 200} | letters)
    channel.put(f"{name}.clock", b"tick")
    channel.consume(f"{name}.dead", no_ack=True)
    assert channel.content().body == b"tick"
    channel.publish(b"young", exchange=name)
    assert channel.drain(bind(channel, name, head=10)) == [b"young"]


def test_head_and_tail_count_matching_messages(channel: Channel, name: str) -> None:
    declare(channel, name, "topic", persist_messages=100)
    for body in TEN:
        channel.publish(body, exchange=name, routing_key="odd" if int(body) % 2 else "even")
    assert channel.drain(bind(channel, name, "odd", head=2)) == [b"1", b"3"]
    assert channel.drain(bind(channel, name, "odd", tail=2)) == [b"7", b"9"]
    assert channel.drain(bind(channel, name, "#", tail=-8)) == [b"8", b"9"]


@pytest.mark.parametrize("kind", ["direct", "topic", "fanout", "headers", "x-random"])
def test_every_type_can_store_messages(channel: Channel, name: str, kind: str) -> None:
    persistent(channel, name, *TEN[:2], kind=kind)
    assert channel.drain(bind(channel, name, head=10)) == TEN[:2]


def test_exchange_can_not_be_bound_to_a_persistent_one(channel: Channel, name: str) -> None:
    persistent(channel, name)
    channel.send("Exchange.Bind", source=name, destination="amq.fanout")
    channel.refused(403, culprit="Exchange.Bind")


def test_persistence_of_a_delayed_exchange_is_refused(channel: Channel, name: str) -> None:
    arguments = {"x-delayed-type": "direct", "x-persist-messages": 5}
    channel.send(
        "Exchange.Declare", exchange=name, exchange_type="x-delayed-message", arguments=arguments
    )
    assert "x-persist-messages" in channel.refused(406, culprit="Exchange.Declare")


@pytest.mark.parametrize("argument", ["x-persist-messages", "x-persist-ms"])
@pytest.mark.parametrize("value", [0, -1, "5", 1.5, True])
def test_invalid_limit_is_refused(
    channel: Channel, name: str, argument: str, value: object
) -> None:
    fields = {"exchange": name, "exchange_type": "fanout", "arguments": {argument: value}}
    channel.send("Exchange.Declare", **fields)
    text = channel.refused(406, culprit="Exchange.Declare")
    assert text.startswith(
        f"PRECONDITION_FAILED - invalid arg '{argument}' for exchange '{name}' in vhost '/'"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"x-head": "all"},
        {"x-tail": 1.5},
        {"x-from": True},
        {"x-from": -1},
        {"x-head": 1, "x-tail": 1},
    ],
)
def test_invalid_replay_request_is_refused(channel: Channel, name: str, arguments: Fields) -> None:
    persistent(channel, name)
    channel.declare(name)
    channel.send("Queue.Bind", queue=name, exchange=name, arguments=arguments)
    channel.refused(406, culprit="Queue.Bind")


# Recent history


def history(channel: Channel, name: str, count: int, **arguments: object) -> None:
    declare(channel, name, "x-recent-history", **arguments)
    for number in range(count):
        channel.publish(b"%d" % number, exchange=name)


def test_new_binding_gets_the_history(channel: Channel, name: str) -> None:
    """The last 20; then what comes. It carries no offset."""
    history(channel, name, 25)
    queue = bind(channel, name)
    channel.publish(b"new", exchange=name)
    taken = [channel.taken(queue) for _ in range(21)]
    bodies = [b"%d" % number for number in range(5, 25)]
    assert [message.body for message in taken] == [*bodies, b"new"]
    assert not any("x-offset" in (message.properties.headers or {}) for message in taken)
    assert channel.ready(queue) == 0


def test_history_length_is_the_declared_one(channel: Channel, name: str) -> None:
    history(channel, name, 5, **{"recent_history_length": 2})
    assert channel.drain(bind(channel, name)) == [b"3", b"4"]


def test_no_store_header_excludes_a_message_from_the_history(channel: Channel, name: str) -> None:
    history(channel, name, 1)
    first = bind(channel, name)
    headers = {"x-recent-history-no-store": True}
    channel.publish(b"passing", {"headers": headers}, exchange=name)
    assert channel.drain(first) == [b"0", b"passing"]
    assert channel.drain(bind(channel, name)) == [b"0"]


@pytest.mark.parametrize("length", [0, -1, "20", 1.5, True])
def test_invalid_history_length_is_refused(channel: Channel, name: str, length: object) -> None:
    arguments = {"x-recent-history-length": length}
    channel.send(
        "Exchange.Declare", exchange=name, exchange_type="x-recent-history", arguments=arguments
    )
    assert "x-recent-history-length" in channel.refused(406, culprit="Exchange.Declare")
