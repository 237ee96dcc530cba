"""amqp.md section 5: x-message-deduplication, of queues and of exchanges (LavinMQ)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.server import WarrenServer

from . import raw
from .raw import Channel
from .test_s5_arguments import REFUSED

Fields = dict[str, Any]
ON = {"x-message-deduplication": True}
WHERE = ["queue", "exchange"]
ARGUMENTS = [
    "x-message-deduplication", "x-cache-size", "x-cache-ttl", "x-deduplication-header",
]  # fmt: skip

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
def test_duplicate_is_dropped(channel: Channel, name: str, where: str) -> None:
    declare(channel, name, where)
    for body, found in ((b"1", "a"), (b"2", "b"), (b"3", "a"), (b"4", None), (b"5", None)):
        publish(channel, name, body, found)
    assert channel.drain(name) == [b"1", b"2", b"4", b"5"]
    publish(channel, name, b"6", "a")
    assert channel.drain(name) == []


@pytest.mark.parametrize("where", WHERE)
def test_a_duplicate_is_confirmed(channel: Channel, name: str, where: str) -> None:
    declare(channel, name, where)
    channel.call("Confirm.Select")
    for number in (1, 2, 3):
        publish(channel, name, b"a", "same")
        assert channel.expect("Basic.Ack").delivery_tag == number
    assert channel.drain(name) == [b"a"]


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_an_exchange_drops_and_confirms(channel: Channel, name: str, kind: str) -> None:
    channel.call("Exchange.Declare", exchange=name, exchange_type=kind, arguments=ON)
    channel.declare(name)
    channel.call("Queue.Bind", queue=name, exchange=name, routing_key=name)
    channel.call("Confirm.Select")
    for body, value in ((b"1", "a"), (b"2", "a"), (b"3", "b"), (b"4", "a")):
        headers = {"x-deduplication-header": value}
        channel.publish(body, {"headers": headers}, exchange=name, routing_key=name)
        channel.expect("Basic.Ack")
    assert channel.drain(name) == [b"1", b"3"]


@pytest.mark.parametrize("where", WHERE)
def test_only_the_last_ids_are_remembered(channel: Channel, name: str, where: str) -> None:
    declare(channel, name, where, cache_size=2)
    for found in ("a", "b", "c", "c", "a", "b"):
        publish(channel, name, found.encode(), found)
    assert channel.drain(name) == [b"a", b"b", b"c", b"a", b"b"]


@pytest.mark.parametrize("where", WHERE)
def test_cache_size_is_128_by_default(channel: Channel, name: str, where: str) -> None:
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
def test_id_is_read_from_the_configured_header(channel: Channel, name: str, where: str) -> None:
    declare(channel, name, where, deduplication_header="order")
    for body, found in ((b"1", "a"), (b"2", "a")):
        publish(channel, name, body, found)
    for body, order in ((b"3", 7), (b"4", 7.0), (b"5", "7")):
        channel.publish(body, {"headers": {"order": order}}, exchange=name)
    assert channel.drain(name) == [b"1", b"2", b"3", b"5"]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("of_message", [False, True])
def test_id_expires_after_its_ttl(
    channel: Channel, name: str, where: str, of_message: bool
) -> None:
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
@pytest.mark.parametrize("transaction", [False, True])
def test_invalid_ttl_header_is_refused(
    channel: Channel, name: str, where: str, ttl: object, transaction: bool
) -> None:
    declare(channel, name, where)
    if transaction:
        channel.call("Tx.Select")
    publish(channel, name, b"a", "a", x_cache_ttl=ttl)
    assert "x-cache-ttl" in channel.refused(406, culprit="Basic.Publish")


@pytest.mark.parametrize(
    ("argument", "value"),
    [(argument, value) for argument in ARGUMENTS for value in REFUSED["classic"][argument]],
)
def test_invalid_exchange_argument_is_refused(
    channel: Channel, name: str, argument: str, value: object
) -> None:
    channel.send(
        "Exchange.Declare", exchange=name, exchange_type="direct", arguments=ON | {argument: value}
    )
    text = channel.refused(406, culprit="Exchange.Declare")
    assert f"'{argument}'" in text and f"exchange '{name}' in vhost '/'" in text


def test_requeued_message_is_not_a_duplicate(channel: Channel, name: str) -> None:
    declare(channel, name, "queue")
    publish(channel, name, b"1", "a")
    tag = channel.taken(name, no_ack=False).method.delivery_tag
    channel.send("Basic.Reject", delivery_tag=tag, requeue=True)
    message = channel.taken(name)
    assert (message.body, message.method.redelivered) == (b"1", True)


def test_each_queue_remembers_its_own_ids(channel: Channel, name: str) -> None:
    channel.call("Exchange.Declare", exchange=name, exchange_type="direct")
    for number in (1, 2):
        channel.declare(f"{name}.{number}", arguments=ON)
        channel.call("Queue.Bind", queue=f"{name}.{number}", exchange=name, routing_key=f"{number}")
    headers = {"headers": {"x-deduplication-header": "a"}}
    for key in ("1", "2", "1", "2"):
        channel.publish(b"x", headers, exchange=name, routing_key=key)
    assert [len(channel.drain(f"{name}.{number}")) for number in (1, 2)] == [1, 1]


@pytest.mark.parametrize("where", WHERE)
def test_rolled_back_id_is_not_remembered(channel: Channel, name: str, where: str) -> None:
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
def test_ids_survive_a_restart(server: tuple[WarrenServer, str], name: str, where: str) -> None:
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
