"""amqp.md section 5: x-message-deduplication, of queues and of exchanges (LavinMQ)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.server import WarrenServer

from . import raw
from .raw import Channel

Fields = dict[str, Any]
ON = {"x-message-deduplication": True}
WHERE = ["queue", "exchange"]

pytestmark = pytest.mark.differs("needs a plugin")


def declare(channel: Channel, name: str, where: str, **arguments: object) -> str:
    """A queue and an exchange that leads there, one of which looks for duplicates."""
    given = ON | {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    of: dict[str, Fields] = {"queue": {}, "exchange": {}} | {where: given}
    channel.declare(name, arguments=of["queue"])
    channel.call(
        "Exchange.Declare", exchange=name, exchange_type="fanout", arguments=of["exchange"]
    )
    channel.call("Queue.Bind", queue=name, exchange=name)
    return name


def publish(channel: Channel, name: str, body: bytes, found: object, **headers: object) -> None:
    given = {"x-deduplication-header": found} if found is not None else {}
    more = {key.replace("_", "-"): value for key, value in headers.items()}
    channel.publish(body, {"headers": given | more}, exchange=name)


@pytest.mark.parametrize("where", WHERE)
def test_what_was_seen_is_dropped(channel: Channel, name: str, where: str) -> None:
    """Also when the first is consumed already; what has no id never is."""
    declare(channel, name, where)
    for body, found in ((b"1", "a"), (b"2", "b"), (b"3", "a"), (b"4", None), (b"5", None)):
        publish(channel, name, body, found)
    assert channel.drain(name) == [b"1", b"2", b"4", b"5"]
    publish(channel, name, b"6", "a")
    assert channel.drain(name) == []


@pytest.mark.parametrize("where", WHERE)
def test_a_duplicate_is_confirmed(channel: Channel, name: str, where: str) -> None:
    """Its publisher has what it wanted."""
    declare(channel, name, where)
    channel.call("Confirm.Select")
    for number in (1, 2, 3):
        publish(channel, name, b"a", "same")
        assert channel.expect("Basic.Ack").delivery_tag == number
    assert channel.drain(name) == [b"a"]


@pytest.mark.parametrize("where", WHERE)
def test_only_the_last_ones_are_known(channel: Channel, name: str, where: str) -> None:
    declare(channel, name, where, cache_size=2)
    for found in ("a", "b", "c", "c", "a", "b"):
        publish(channel, name, found.encode(), found)
    assert channel.drain(name) == [b"a", b"b", b"c", b"a", b"b"]


@pytest.mark.parametrize("where", WHERE)
def test_of_128_unless_told(channel: Channel, name: str, where: str) -> None:
    declare(channel, name, where)
    for number in range(128):
        publish(channel, name, b"", str(number))
    channel.drain(name)
    publish(channel, name, b"again", "0")
    assert channel.drain(name) == []
    publish(channel, name, b"one more", "128")
    publish(channel, name, b"known no more", "0")
    assert channel.drain(name) == [b"one more", b"known no more"]


@pytest.mark.parametrize("where", WHERE)
def test_by_another_header(channel: Channel, name: str, where: str) -> None:
    declare(channel, name, where, deduplication_header="order")
    for body, found in ((b"1", "a"), (b"2", "a")):
        publish(channel, name, body, found)
    for body, order in ((b"3", 7), (b"4", 7), (b"5", 8)):
        channel.publish(body, {"headers": {"order": order}}, exchange=name)
    assert channel.drain(name) == [b"1", b"2", b"3", b"5"]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("of_message", [False, True])
def test_for_a_while(channel: Channel, name: str, where: str, of_message: bool) -> None:
    """By the argument or by the header x-cache-ttl. The clock is a message that expires later."""
    arguments, headers = ({}, {"x_cache_ttl": 50}) if of_message else ({"cache_ttl": 50}, {})
    declare(channel, name, where, **arguments)
    publish(channel, name, b"1", "a", **headers)
    publish(channel, name, b"2", "a", **headers)
    channel.declare(f"{name}.dead")
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}.dead"}
    channel.declare(f"{name}.clock", arguments={"x-message-ttl": 100} | letters)
    channel.put(f"{name}.clock", b"tick")
    channel.consume(f"{name}.dead", no_ack=True)
    assert channel.content().body == b"tick"
    publish(channel, name, b"3", "a", **headers)
    assert channel.drain(name) == [b"1", b"3"]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("ttl", [-1, "soon", 1.5, True])
def test_time_of_a_message_that_is_none(
    channel: Channel, name: str, where: str, ttl: object
) -> None:
    declare(channel, name, where)
    publish(channel, name, b"a", "a", x_cache_ttl=ttl)
    assert "x-cache-ttl" in channel.refused(406, culprit="Basic.Publish")


@pytest.mark.parametrize("size", [0, -1, "5", 1_000_000_000])
def test_cache_of_an_exchange_that_can_not_be(channel: Channel, name: str, size: object) -> None:
    """One of a thousand million ids stopped LavinMQ."""
    arguments = ON | {"x-cache-size": size}
    channel.send("Exchange.Declare", exchange=name, exchange_type="direct", arguments=arguments)
    assert "'x-cache-size'" in channel.refused(406, culprit="Exchange.Declare")


def test_what_came_back_is_no_duplicate(channel: Channel, name: str) -> None:
    declare(channel, name, "queue")
    publish(channel, name, b"1", "a")
    tag = channel.taken(name, no_ack=False).method.delivery_tag
    channel.send("Basic.Reject", delivery_tag=tag, requeue=True)
    message = channel.taken(name)
    assert (message.body, message.method.redelivered) == (b"1", True)


def test_each_queue_has_seen_its_own(channel: Channel, name: str) -> None:
    channel.call("Exchange.Declare", exchange=name, exchange_type="direct")
    for number in (1, 2):
        channel.declare(f"{name}.{number}", arguments=ON)
        channel.call("Queue.Bind", queue=f"{name}.{number}", exchange=name, routing_key=f"{number}")
    headers = {"headers": {"x-deduplication-header": "a"}}
    for key in ("1", "2", "1", "2"):
        channel.publish(b"x", headers, exchange=name, routing_key=key)
    assert [len(channel.drain(f"{name}.{number}")) for number in (1, 2)] == [1, 1]


@pytest.mark.parametrize("where", WHERE)
def test_rolled_back_was_never_seen(channel: Channel, name: str, where: str) -> None:
    declare(channel, name, where)
    channel.call("Tx.Select")
    publish(channel, name, b"no", "a")
    channel.call("Tx.Rollback")
    publish(channel, name, b"yes", "a")
    publish(channel, name, b"again", "a")
    channel.call("Tx.Commit")
    assert channel.drain(name) == [b"yes"]


@pytest.fixture(scope="module", params=["stop", "kill"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[WarrenServer, str]]:
    with WarrenServer() as found:
        yield found, request.param


@pytest.mark.parametrize("where", WHERE)
def test_known_after_a_restart(server: tuple[WarrenServer, str], name: str, where: str) -> None:
    """Of what was persistent; LavinMQ knows in memory only."""
    warren, how = server
    declared: dict[str, Fields] = {"queue": {}, "exchange": {}} | {where: {"arguments": ON}}
    for round_ in (1, 2):
        with raw.connect(warren.amqp_port) as client:
            channel = client.channel()
            channel.declare(name, durable=True, **declared["queue"])
            channel.call(
                "Exchange.Declare", exchange=name, exchange_type="fanout", durable=True,
                **declared["exchange"],
            )  # fmt: skip
            channel.call("Queue.Bind", queue=name, exchange=name)
            channel.call("Confirm.Select")
            headers = {"x-deduplication-header": "a"}
            properties = {"headers": headers, "delivery_mode": 2}
            channel.publish(b"%d" % round_, properties, exchange=name)
            channel.expect("Basic.Ack")
            if round_ == 2:
                assert channel.drain(name) == [b"1"]
        if round_ == 1:
            if how == "kill":
                warren.kill()
            warren.restart()
