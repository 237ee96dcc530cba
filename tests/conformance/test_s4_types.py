"""amqp.md section 4, row by row: exchange types, alternates and copies beside the basic rules."""

from __future__ import annotations

from typing import Any

import pytest

from .raw import Channel
from .test_s4_exchange import Fields, bound_queue, exchange

plugin = pytest.mark.differs("knows this type only with a plugin")


def hashing(channel: Channel, name: str, *weights: int, **arguments: object) -> list[str]:
    """Declares a consistent hash exchange; returns its queues, one for each weight."""
    exchange(channel, name, "x-consistent-hash", arguments=arguments)
    return [bound_queue(channel, name, str(weight)) for weight in weights]


def publish_keys(channel: Channel, name: str, count: int, **properties: Any) -> None:
    for number in range(count):
        channel.publish(b"x", properties, exchange=name, routing_key=f"key-{number}")


def keys(channel: Channel, queue: str) -> set[str]:
    """The routing keys of all that is in a queue."""
    return {
        message.method.routing_key for message in iter(lambda: channel.get(queue), None) if message
    }


# x-consistent-hash


@plugin
def test_consistent_hash_keeps_a_key_in_one_queue(channel: Channel, name: str) -> None:
    queues = hashing(channel, name, 10, 10, 20, 20)
    for _ in range(3):
        publish_keys(channel, name, 200)
    assert sum(channel.ready(queue) for queue in queues) == 600
    found = [keys(channel, queue) for queue in queues]
    assert sum(map(len, found)) == 200
    assert all(len(part) >= 20 for part in found)


@plugin
def test_consistent_hash_moves_only_the_keys_of_a_queue_bound_or_unbound(
    channel: Channel, name: str
) -> None:
    queues = hashing(channel, name, 10, 10)
    publish_keys(channel, name, 200)
    before = [keys(channel, queue) for queue in queues]
    new = bound_queue(channel, name, "10")
    publish_keys(channel, name, 200)
    taken = keys(channel, new)
    assert 40 <= len(taken) <= 95
    assert [keys(channel, queue) for queue in queues] == [part - taken for part in before]
    channel.call("Queue.Unbind", queue=new, exchange=name, routing_key="10")
    publish_keys(channel, name, 200)
    assert [keys(channel, queue) for queue in queues] == before


@plugin
@pytest.mark.parametrize(
    ("weight", "text"),
    [
        ("0", "The binding key must be greater than 0"),
        ("-5", "The binding key must be greater than 0"),
        *(
            (text, "The binding key must be an integer")
            for text in ("heavy", "", "1.0", "1_0", "٣")
        ),
        ("10001", "The binding key must be at most 10000"),
    ],
)
def test_consistent_hash_shares_follow_the_weights(
    channel: Channel, name: str, weight: str, text: str
) -> None:
    hashing(channel, name, 1, 10_000)
    queue = str(channel.declare().queue)
    channel.send("Queue.Bind", queue=queue, exchange=name, routing_key=weight)
    told = channel.refused(406, culprit="Queue.Bind")
    assert told == f"PRECONDITION_FAILED - {text}: '{weight}' for exchange '{name}' in vhost '/'"


@plugin
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"hash-header": "a", "hash-property": "message_id"},
            "hash-header and hash-property are mutually exclusive",
        ),
        ({"hash-header": "a", "x-hash-on": "a"}, "hash-header and x-hash-on are mutually"),
        ({"hash-property": "user_id"}, "Unsupported property: user_id"),
        ({"x-algorithm": "other"}, "invalid arg 'x-algorithm' for exchange"),
        ({"hash-header": 5}, "invalid type 'signedint' for arg 'hash-header'"),
        ({"x-hash-on": True}, "invalid type 'bool' for arg 'x-hash-on'"),
        ({"hash-property": None}, "invalid type 'void' for arg 'hash-property'"),
    ],
)
def test_consistent_hash_refuses_invalid_arguments(
    channel: Channel, name: str, arguments: Fields, text: str
) -> None:
    channel.send(
        "Exchange.Declare", exchange=name, exchange_type="x-consistent-hash", arguments=arguments
    )
    told = channel.refused(406, culprit="Exchange.Declare")
    assert told.startswith(f"PRECONDITION_FAILED - {text}")


@plugin
@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ({"hash-header": "user"}, [{"headers": {"user": f"u{n}"}} for n in range(60)]),
        ({"x-hash-on": "user"}, [{"headers": {"user": n}} for n in range(60)]),
        ({"hash-property": "message_id"}, [{"message_id": f"m{n}"} for n in range(60)]),
        ({"hash-property": "correlation_id"}, [{"correlation_id": f"c{n}"} for n in range(60)]),
        (
            {"hash-property": "timestamp", "x-algorithm": "jump"},
            [{"timestamp": 1_795_219_200 + n} for n in range(60)],
        ),
    ],
)
def test_consistent_hash_by_header_or_property(
    channel: Channel, name: str, argument: Fields, values: list[Fields]
) -> None:
    """One queue for all messages without it, whatever their keys."""
    queues = hashing(channel, name, 1, 1, **argument)
    for number, properties in enumerate(values * 2):
        body = b"%d" % (number % len(values))
        channel.publish(body, properties, exchange=name, routing_key=str(number))
    found = [channel.drain(queue) for queue in queues]
    assert all(len(bodies) > 20 for bodies in found)
    assert set(found[0]).isdisjoint(found[1])
    publish_keys(channel, name, 20)
    assert sorted(channel.ready(queue) for queue in queues) == [0, 20]


# x-random, x-local-random, x-modulus-hash


@plugin
@pytest.mark.parametrize("kind", ["x-random", "x-local-random"])
def test_random_exchange_spreads_messages_over_its_queues(
    channel: Channel, name: str, kind: str
) -> None:
    """With 300 messages of one key, a queue with fewer than 100 would be one in 10^8."""
    exchange(channel, name, kind)
    queues = [bound_queue(channel, name, key) for key in ("a", "")]
    for _ in range(300):
        channel.publish(b"x", exchange=name, routing_key="a", mandatory=True)
    found = [channel.ready(queue) for queue in queues]
    assert sum(found) == 300
    assert min(found) >= 100


@plugin
def test_modulus_hash_keeps_a_key_in_one_queue(channel: Channel, name: str) -> None:
    exchange(channel, name, "x-modulus-hash")
    queues = [bound_queue(channel, name) for _ in range(3)]
    for _ in range(2):
        publish_keys(channel, name, 150)
    found = [channel.drain(queue) for queue in queues]
    assert sum(map(len, found)) == 300
    assert all(len(bodies) > 60 for bodies in found)


@plugin
@pytest.mark.parametrize(
    "kind", ["x-consistent-hash", "x-random", "x-local-random", "x-modulus-hash"]
)
def test_message_is_unroutable_without_bindings(channel: Channel, name: str, kind: str) -> None:
    channel.publish(b"x", exchange=exchange(channel, name, kind), routing_key="k", mandatory=True)
    assert channel.content("Basic.Return").method.reply_code == 312


# Alternate exchange


def test_alternate_in_a_transaction(channel: Channel, name: str) -> None:
    """It counts as routed: nothing comes back with the commit."""
    exchange(channel, f"{name}.3", "fanout")
    exchange(channel, f"{name}.2", arguments={"alternate-exchange": f"{name}.3"})
    exchange(channel, f"{name}.1", arguments={"alternate-exchange": f"{name}.2"})
    queue = bound_queue(channel, f"{name}.3")
    channel.call("Tx.Select")
    channel.publish(b"x", {"app_id": "a"}, exchange=f"{name}.1", routing_key="k", mandatory=True)
    assert channel.ready(queue) == 0
    channel.call("Tx.Commit")
    message = channel.taken(queue)
    assert (message.method.exchange, message.properties.app_id) == (f"{name}.1", "a")


def test_absent_alternate_in_a_transaction_returns_the_message(channel: Channel, name: str) -> None:
    exchange(channel, name, arguments={"alternate-exchange": f"{name}.absent"})
    channel.call("Tx.Select")
    channel.publish(b"x", exchange=name, routing_key="k", mandatory=True)
    channel.send("Tx.Commit")
    assert channel.content("Basic.Return").method.reply_code == 312
    channel.expect("Tx.CommitOk")


@plugin
def test_random_exchange_without_bindings_uses_its_alternate(channel: Channel, name: str) -> None:
    exchange(channel, f"{name}.ae", "fanout")
    exchange(channel, name, "x-random", arguments={"alternate-exchange": f"{name}.ae"})
    spare = bound_queue(channel, f"{name}.ae")
    channel.publish(b"spare", exchange=name)
    assert channel.drain(spare) == [b"spare"]
    own = bound_queue(channel, name)
    channel.publish(b"own", exchange=name)
    assert (channel.drain(own), channel.ready(spare)) == ([b"own"], 0)


# CC, BCC


@pytest.mark.parametrize(
    ("kind", "each"),
    [
        ("direct", [1, 1, 1, 0]),
        ("topic", [1, 1, 1, 0]),
        ("fanout", [1, 1, 1, 1]),
        ("headers", [1, 1, 1, 1]),
        pytest.param("x-delayed-message", [1, 1, 1, 0], marks=plugin),
        pytest.param("x-consistent-hash", None, marks=plugin),
        pytest.param("x-modulus-hash", None, marks=plugin),
        pytest.param("x-random", None, marks=plugin),
        pytest.param("x-local-random", None, marks=plugin),
    ],
)
def test_copies_are_routed_by_the_exchange_type(
    channel: Channel, name: str, kind: str, each: list[int] | None
) -> None:
    """Further keys are keys like the first; types that choose one queue choose one."""
    exchange(channel, name, kind, arguments={"x-delayed-type": "direct"})
    queues = [bound_queue(channel, name, key) for key in ("1", "2", "3", "4")]
    headers = {"CC": ["2"], "BCC": ["3"], "own": 1}
    channel.call("Confirm.Select")
    channel.publish(b"x", {"headers": headers}, exchange=name, routing_key="1")
    channel.expect("Basic.Ack")
    found = [channel.ready(queue) for queue in queues]
    assert found == each if each else sorted(found) == [0, 0, 0, 1]
    for queue in (queue for queue, count in zip(queues, found, strict=True) if count):
        message = channel.taken(queue)
        assert message.method.routing_key == "1"
        assert message.properties.headers == {"CC": ["2"], "own": 1}


# Arguments


def declare_twice(channel: Channel, name: str, first: Fields, second: Fields) -> None:
    exchange(channel, name, arguments=first)
    channel.send("Exchange.Declare", exchange=name, exchange_type="direct", arguments=second)


@pytest.mark.differs("has no exchanges that keep messages")
def test_numbers_in_arguments_are_compared_by_value(channel: Channel, name: str) -> None:
    declare_twice(channel, name, {"x-persist-messages": 10}, {"x-persist-messages": 10.0})
    channel.expect("Exchange.DeclareOk")


@pytest.mark.parametrize("second", [{}, {"x-anything": 11}, {"x-more": 1}])
def test_unknown_argument_is_not_compared(channel: Channel, name: str, second: Fields) -> None:
    declare_twice(channel, name, {"x-anything": 10}, second)
    channel.expect("Exchange.DeclareOk")
