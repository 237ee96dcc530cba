"""Deduplication by queues and exchanges, as publishers and consumers see it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.amqp import Client, Reply, bodies, make_broker, names, publish, take_turns
from warrenmq.core.clock import ManualClock

DEDUPLICATES = {"x-message-deduplication": True}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def client(clock: ManualClock) -> Client:
    client = Client(make_broker(clock=clock))
    client.declare("q", arguments=DEDUPLICATES)
    client.declare("plain")
    return client


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


# -- queues


def test_a_queue_drops_what_it_has_seen(client: Client) -> None:
    for number, value in enumerate(("a", "b", "a", 1, 1.0, "1")):
        send(client, value, b"%d" % number)
    assert drain(client) == [b"0", b"1", b"3", b"5"]
    send(client, "a")
    assert drain(client) == [], "also when the first one has been consumed"


def test_in_one_read_too(client: Client) -> None:
    row = (
        publish(1, b"%d" % number, {"headers": {"x-deduplication-header": number % 3}},
                routing_key="q")
        for number in range(50)
    )  # fmt: skip
    client.feed(b"".join(row))
    assert drain(client) == [b"0", b"1", b"2"]


def test_a_dropped_message_is_confirmed_and_counts_as_routed(client: Client) -> None:
    client.call("Confirm.Select")
    for _ in range(2):
        assert names(send(client, "a", mandatory=True)) == ["Basic.Ack"]
    assert client.messages("q") == 1


def test_other_queues_keep_theirs(client: Client) -> None:
    for queue in ("q", "plain"):
        client.call("Queue.Bind", queue=queue, exchange="amq.fanout")
    for _ in range(3):
        send(client, "a", exchange="amq.fanout")
    assert (client.messages("q"), client.messages("plain")) == (1, 3)


def test_another_header_and_size(client: Client) -> None:
    client.declare(
        "r", arguments=DEDUPLICATES | {"x-deduplication-header": "id", "x-cache-size": 2}
    )
    for number, value in enumerate(("a", "b", "a", "c", "a")):
        send(client, "same", b"%d" % number, "r", headers={"id": value})
    assert drain(client, "r") == [b"0", b"1", b"3", b"4"]


def test_for_so_long(client: Client, clock: ManualClock) -> None:
    client.declare("r", arguments=DEDUPLICATES | {"x-cache-ttl": 100})
    for at_ms in (0, 99, 1, 50):
        clock.advance(at_ms)
        send(client, "a", key="r")
    assert client.messages("r") == 2
    send(client, "b", key="r", headers={"x-cache-ttl": 5})
    clock.advance(5)
    send(client, "b", key="r")
    assert client.messages("r") == 4


@pytest.mark.parametrize("value", ["5", -1, True])
@pytest.mark.parametrize("transaction", [False, True])
def test_a_bad_time_closes_the_channel(client: Client, value: object, transaction: bool) -> None:
    """At the publish, not at the commit: nothing of it has happened then."""
    if transaction:
        client.call("Tx.Select")
    (close,) = send(client, "a", headers={"x-cache-ttl": value})
    assert (close.name, close["reply_code"]) == ("Channel.Close", 406)
    assert "invalid header 'x-cache-ttl'" in close["reply_text"]
    assert client.messages("q") == 0


def test_a_message_that_was_refused_was_not_seen(client: Client) -> None:
    limited = {"x-max-length": 1, "x-overflow": "reject-publish"}
    client.declare("r", arguments=DEDUPLICATES | limited)
    client.call("Confirm.Select")
    assert names(send(client, "a", key="r")) == ["Basic.Ack"]
    assert names(send(client, "b", key="r")) == ["Basic.Nack"]
    assert names(send(client, "a", key="r")) == ["Basic.Ack"], "it is there already"
    drain(client, "r")
    assert names(send(client, "b", b"again", "r")) == ["Basic.Ack"]
    assert drain(client, "r") == [b"again"]


def test_a_limit_that_drops_the_head_refuses_nothing(client: Client) -> None:
    client.declare("r", arguments=DEDUPLICATES | {"x-max-length": 1})
    client.call("Confirm.Select")
    for value in "abc":
        assert names(send(client, value, value.encode(), "r")) == ["Basic.Ack"]
    assert drain(client, "r") == [b"c"]


def test_a_transaction_that_is_rolled_back_was_not_seen(client: Client) -> None:
    client.call("Tx.Select")
    send(client, "a")
    client.call("Tx.Rollback")
    for body in (b"1", b"2"):
        send(client, "a", body)
    assert client.call("Tx.Commit").name == "Tx.CommitOk"
    assert drain(client) == [b"1"]


def test_dead_letters_are_looked_at_too(client: Client) -> None:
    client.declare("work", arguments={
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q",
    })  # fmt: skip
    for body in (b"1", b"2"):
        send(client, "a", body, "work", headers={"x-cache-ttl": "wrong"})
        tag = client.call("Basic.Get", queue="work")["delivery_tag"]
        client.send("Basic.Reject", delivery_tag=tag)
    take_turns(client.broker)
    assert drain(client) == [b"1"]


def test_a_requeued_message_is_no_new_one(client: Client) -> None:
    send(client, "a")
    tag = client.call("Basic.Get", queue="q")["delivery_tag"]
    client.send("Basic.Nack", delivery_tag=tag, requeue=True)
    assert drain(client) == [b"m"]


# -- exchanges


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic"])
def test_an_exchange_does_not_route_what_it_has_seen(client: Client, kind: str) -> None:
    exchange(client, kind=kind)
    client.call("Confirm.Select")
    for value in ("a", "b", "a"):
        assert names(send(client, value, value.encode(), "plain", "x")) == ["Basic.Ack"]
    assert drain(client, "plain") == [b"a", b"b"]


def test_whatever_its_key(client: Client) -> None:
    """It is the exchange that has seen it, not a binding."""
    exchange(client)
    client.declare("other")
    client.call("Queue.Bind", queue="other", exchange="x", routing_key="other")
    send(client, "a", key="plain", exchange="x")
    send(client, "a", key="other", exchange="x")
    assert (client.messages("plain"), client.messages("other")) == (1, 0)


def test_all_keys_of_one_message_are_one(client: Client) -> None:
    exchange(client)
    client.declare("other")
    client.call("Queue.Bind", queue="other", exchange="x", routing_key="other")
    for _ in range(2):
        send(client, "a", key="plain", exchange="x", headers={"CC": ["other"]})
    assert (client.messages("plain"), client.messages("other")) == (1, 1)


def test_in_one_read_an_exchange_sees_each(client: Client) -> None:
    exchange(client)
    row = (
        publish(1, b"%d" % number, {"headers": {"x-deduplication-header": number % 3}},
                routing_key="plain", exchange="x")
        for number in range(50)
    )  # fmt: skip
    client.feed(b"".join(row))
    assert drain(client, "plain") == [b"0", b"1", b"2"]


def test_what_was_returned_was_not_seen(client: Client) -> None:
    """Its publisher will send it again when there is a queue."""
    exchange(client)
    client.call("Confirm.Select")
    for _ in range(2):
        found = names(send(client, "a", key="nowhere", exchange="x", mandatory=True))
        assert found == ["Basic.Return", "Basic.Ack"]
    assert names(send(client, "a", key="plain", exchange="x", mandatory=True)) == ["Basic.Ack"]
    assert client.messages("plain") == 1
    assert names(send(client, "a", key="nowhere", exchange="x", mandatory=True)) == ["Basic.Ack"]


def test_what_a_queue_refused_was_not_seen(client: Client) -> None:
    exchange(client)
    client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.call("Queue.Bind", queue="full", exchange="x", routing_key="full")
    client.call("Confirm.Select")
    for _ in range(2):
        assert names(send(client, "a", key="full", exchange="x")) == ["Basic.Nack"]


def test_an_exchange_in_a_transaction(client: Client) -> None:
    exchange(client)
    client.call("Tx.Select")
    send(client, "a", b"0", "plain", "x")
    client.call("Tx.Rollback")
    for body in (b"1", b"2"):
        send(client, "a", body, "plain", "x")
    assert client.call("Tx.Commit").name == "Tx.CommitOk"
    assert drain(client, "plain") == [b"1"]


def test_a_bad_time_at_an_exchange(client: Client) -> None:
    exchange(client)
    (close,) = send(client, "a", key="plain", exchange="x", headers={"x-cache-ttl": "soon"})
    assert (close.name, close["reply_code"]) == ("Channel.Close", 406)


def test_an_exchange_that_delays_too(client: Client, clock: ManualClock) -> None:
    """What waits has been seen; it is not looked at again when it is due."""
    exchange(client, kind="x-delayed-message", x_delayed_type="direct")
    for body in (b"1", b"2"):
        send(client, "a", body, "plain", "x", headers={"x-delay": 50})
    clock.advance(50)
    take_turns(client.broker)
    assert drain(client, "plain") == [b"1"]


def test_a_deleted_exchange_has_seen_nothing(client: Client) -> None:
    for _ in range(2):
        exchange(client)
        send(client, "a", key="plain", exchange="x")
        client.call("Exchange.Delete", exchange="x")
    assert client.messages("plain") == 2


def test_fast_and_paged_out_path_agree(clock: ManualClock) -> None:
    found = []
    for fast in (True, False):
        client = Client(make_broker(clock=clock), fast=fast)
        client.declare("q", arguments=DEDUPLICATES)
        client.call("Confirm.Select")
        row = (
            publish(1, b"%d" % number, {"headers": {"x-deduplication-header": number // 2}},
                    routing_key="q")
            for number in range(20)
        )  # fmt: skip
        replies = client.feed(b"".join(row))
        found.append((names(replies), bodies(client.consume("q"))))
    assert found[0] == found[1]
