"""amqp.md section 5: x-delivery-limit, x-delivery-count and x-acquired-count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .raw import Channel, Client, Content

Fields = dict[str, Any]
Connect = Callable[..., Client]
KINDS = ["classic", "quorum"]
QUORUM_DEFAULT = 20

pytestmark = pytest.mark.differs("3.10 has no default, and other counts")


def declare(channel: Channel, name: str, kind: str, limit: int | None = None) -> str:
    """A queue of that kind with a graveyard, whose name is given."""
    dead = f"{name}.dead"
    channel.declare(dead)
    arguments: Fields = {
        "x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead,
    }  # fmt: skip
    if limit is not None:
        arguments["x-delivery-limit"] = limit
    channel.declare(name, durable=True, arguments=arguments)
    return dead


def count(message: Content) -> int | None:
    headers: Any = message.properties.headers or {}
    found: int | None = headers.get("x-delivery-count")
    return found


def send_back(connect: Connect, channel: Channel, queue: str, how: str) -> Content:
    """Takes the next message, returns it to the queue, and returns it as it was delivered."""
    taker = connect().channel()
    message = taker.taken(queue, no_ack=False)
    match how:
        case "reject" | "nack":
            tag = message.method.delivery_tag
            taker.send(f"Basic.{how.title()}", delivery_tag=tag, requeue=True)
            taker.call("Basic.Qos")
        case "recover":
            taker.call("Basic.Recover", requeue=True)
        case "channel":
            taker.close()
        case _:
            taker.client.close()
    return message


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["reject", "channel", "connection"])
def test_failures_are_counted(
    connect: Connect, channel: Channel, name: str, kind: str, how: str
) -> None:
    declare(channel, name, kind, 10)
    channel.put(name, b"a", properties={"headers": {"own": 1}, "delivery_mode": 2})
    seen = [send_back(connect, channel, name, how) for _ in range(3)]
    assert [count(message) for message in seen] == [None, 1, 2]
    assert [message.method.redelivered for message in seen] == [False, True, True]
    assert all((message.properties.headers or {})["own"] == 1 for message in seen)


@pytest.mark.parametrize("kind", KINDS)
def test_deliveries_carry_the_count_as_gets_do(channel: Channel, name: str, kind: str) -> None:
    declare(channel, name, kind, 10)
    channel.put(name, b"a", b"b")
    channel.consume(name)
    assert [count(channel.content()) for _ in range(2)] == [None, None]
    channel.send("Basic.Reject", delivery_tag=2, requeue=True)
    message = channel.content()
    assert (message.body, count(message)) == (b"b", 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_message_over_the_limit_is_dead_lettered(
    connect: Connect, channel: Channel, name: str, kind: str, limit: int
) -> None:
    dead = declare(channel, name, kind, limit)
    channel.put(name, b"a", b"next", properties={"delivery_mode": 2})
    for _ in range(limit + 1):
        assert send_back(connect, channel, name, "reject").body == b"a"
    channel.consume(dead, no_ack=True)
    message = channel.content()
    headers: Any = message.properties.headers
    assert message.body == b"a"
    assert headers["x-death"][0]["reason"] == "delivery_limit"
    assert headers["x-first-death-reason"] == "delivery_limit"
    assert channel.taken(name).body == b"next"


@pytest.mark.parametrize(
    ("kind", "limit", "counted"),
    [*((kind, -1, QUORUM_DEFAULT + 5) for kind in KINDS), ("classic", None, None)],
)
def test_negative_limit_and_classic_default_are_unlimited(
    connect: Connect, channel: Channel, name: str, kind: str, limit: int | None, counted: int | None
) -> None:
    """-1 is no limit, and classic queues have none of their own."""
    declare(channel, name, kind, limit)
    channel.put(name, b"a")
    for _ in range(QUORUM_DEFAULT + 5):
        send_back(connect, channel, name, "reject")
    message = channel.taken(name)
    assert (message.body, count(message)) == (b"a", counted)


def test_quorum_queues_have_a_limit_of_20(connect: Connect, channel: Channel, name: str) -> None:
    dead = declare(channel, name, "quorum")
    channel.put(name, b"a")
    for _ in range(QUORUM_DEFAULT + 1):
        send_back(connect, channel, name, "reject")
    channel.consume(dead, no_ack=True)
    assert channel.content().body == b"a"


def test_message_over_the_limit_is_dropped_without_a_dead_letter_exchange(
    connect: Connect, channel: Channel, name: str
) -> None:
    channel.declare(name, arguments={"x-delivery-limit": 1})
    channel.put(name, b"a")
    for _ in range(2):
        send_back(connect, channel, name, "reject")
    assert channel.get(name) is None


def test_counts_are_per_queue(connect: Connect, channel: Channel, name: str) -> None:
    channel.call("Exchange.Declare", exchange=name, exchange_type="fanout")
    for queue in (f"{name}.1", f"{name}.2"):
        declare(channel, queue, "classic", 5)
        channel.call("Queue.Bind", queue=queue, exchange=name)
    channel.publish(b"a", exchange=name)
    send_back(connect, channel, f"{name}.1", "reject")
    assert count(channel.taken(f"{name}.1")) == 1
    assert count(channel.taken(f"{name}.2")) is None


@pytest.mark.parametrize("how", ["nack", "recover"])
def test_nack_and_recover_do_not_count_as_failures(
    connect: Connect, channel: Channel, name: str, how: str
) -> None:
    """Quorum queues count them apart, as every assignment (RabbitMQ 4.3)."""
    declare(channel, name, "quorum", 1)
    channel.put(name, b"a")
    for _ in range(4):
        send_back(connect, channel, name, how)
    message = channel.taken(name)
    headers: Any = message.properties.headers
    assert (message.body, headers.get("x-delivery-count", 0)) == (b"a", 0)
    assert headers["x-acquired-count"] == 4


def test_every_assignment_is_counted(connect: Connect, channel: Channel, name: str) -> None:
    declare(channel, name, "quorum", 10)
    channel.put(name, b"a")
    seen = [send_back(connect, channel, name, how) for how in ("nack", "reject", "channel")]
    seen.append(channel.taken(name))
    headers: list[Fields] = [dict(message.properties.headers or {}) for message in seen]
    assert [found.get("x-acquired-count") for found in headers] == [None, 1, 2, 3]
    assert [found.get("x-delivery-count", 0) for found in headers] == [0, 0, 1, 2]
