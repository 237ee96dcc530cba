"""Message deduplication by queues and exchanges."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.amqp import Client, Reply, make_broker, names, publish, take_turns
from warrenmq.core.clock import ManualClock

DEDUPLICATES = {"x-message-deduplication": True}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def client(clock: ManualClock) -> Client:
    """With a queue `q` and an exchange `x`, which leads to `plain`, that deduplicate."""
    client = Client(make_broker(clock=clock))
    client.declare("q", arguments=DEDUPLICATES)
    client.declare("plain")
    exchange(client)
    return client


@pytest.fixture(params=[("q", ""), ("plain", "x")], ids=["queue", "exchange"])
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Routing key, which is the queue's name, and exchange."""
    found: tuple[str, str] = request.param
    return found


def exchange(client: Client, name: str = "x", kind: str = "direct", **more: Any) -> None:
    given = {key.replace("_", "-"): value for key, value in more.items()}
    answer = client.call(
        "Exchange.Declare", exchange=name, exchange_type=kind, arguments=DEDUPLICATES | given
    )
    assert answer.name == "Exchange.DeclareOk"
    client.call("Queue.Bind", queue="plain", exchange=name, routing_key="plain")


def send(
    client: Client, value: object, body: bytes = b"m", key: str = "q", exchange: str = "",
    **more: Any,
) -> list[Reply]:  # fmt: skip
    headers = {"x-deduplication-header": value, **more.pop("headers", {})}
    mandatory = more.pop("mandatory", False)
    properties = {"headers": headers, **more}
    return client.publish(body, properties, routing_key=key, exchange=exchange, mandatory=mandatory)


def drain(client: Client, queue: str = "q") -> list[bytes]:
    found = []
    while (reply := client.call("Basic.Get", queue=queue, no_ack=True)).name == "Basic.GetOk":
        found.append(reply.body)
    return found


# -- queues and exchanges alike


def test_ids_are_compared_within_a_read(client: Client, place: tuple[str, str]) -> None:
    key, exchange_name = place
    row = (
        publish(1, b"%d" % number, {"headers": {"x-deduplication-header": number % 3}},
                routing_key=key, exchange=exchange_name)
        for number in range(50)
    )  # fmt: skip
    client.feed(b"".join(row))
    assert drain(client, key) == [b"0", b"1", b"2"]


# -- queues


def test_refused_id_is_not_remembered(client: Client) -> None:
    limited = {"x-max-length": 1, "x-overflow": "reject-publish"}
    client.declare("r", arguments=DEDUPLICATES | limited)
    client.call("Confirm.Select")
    for value, outcome in (("a", "Ack"), ("b", "Nack"), ("a", "Ack")):
        assert names(send(client, value, key="r")) == [f"Basic.{outcome}"]
    drain(client, "r")
    assert names(send(client, "b", b"again", "r")) == ["Basic.Ack"]
    assert drain(client, "r") == [b"again"]


def test_dead_letters_are_deduplicated_and_requeued_messages_are_not(client: Client) -> None:
    client.declare("work", arguments={
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q",
    })  # fmt: skip
    for body in (b"1", b"2"):
        send(client, "a", body, "work", headers={"x-cache-ttl": "wrong"})
        tag = client.call("Basic.Get", queue="work")["delivery_tag"]
        client.send("Basic.Reject", delivery_tag=tag)
    take_turns(client.broker)
    tag = client.call("Basic.Get", queue="q")["delivery_tag"]
    client.send("Basic.Nack", delivery_tag=tag, requeue=True)
    assert drain(client) == [b"1"]


# -- exchanges


def test_all_routing_keys_share_the_ids(client: Client) -> None:
    client.declare("other")
    client.call("Queue.Bind", queue="other", exchange="x", routing_key="other")
    for number in range(2):
        send(client, number, key="plain", exchange="x", headers={"CC": ["other"]})
        send(client, number, key="other", exchange="x")
    assert (client.messages("plain"), client.messages("other")) == (2, 2)


def test_returned_id_is_not_remembered(client: Client) -> None:
    client.call("Confirm.Select")
    for key, outcome in (
        ("nowhere", ["Basic.Return", "Basic.Ack"]), ("nowhere", ["Basic.Return", "Basic.Ack"]),
        ("plain", ["Basic.Ack"]), ("nowhere", ["Basic.Ack"]),
    ):  # fmt: skip
        assert names(send(client, "a", key=key, exchange="x", mandatory=True)) == outcome
    assert client.messages("plain") == 1


def test_id_refused_by_a_queue_is_not_remembered_by_the_exchange(client: Client) -> None:
    client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.call("Queue.Bind", queue="full", exchange="x", routing_key="full")
    client.call("Confirm.Select")
    for _ in range(2):
        assert names(send(client, "a", key="full", exchange="x")) == ["Basic.Nack"]


def test_a_delayed_exchange_deduplicates_once(client: Client, clock: ManualClock) -> None:
    exchange(client, "y", "x-delayed-message", x_delayed_type="direct")
    for body in (b"1", b"2"):
        send(client, "a", body, "plain", "y", headers={"x-delay": 50})
    clock.advance(50)
    take_turns(client.broker)
    assert drain(client, "plain") == [b"1"]


def test_ids_are_forgotten_with_the_exchange(client: Client) -> None:
    for _ in range(2):
        exchange(client, "y")
        send(client, "a", key="plain", exchange="y")
        client.call("Exchange.Delete", exchange="y")
    assert client.messages("plain") == 2
