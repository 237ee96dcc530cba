"""Counting what clients do, for the server, virtual hosts, channels and objects."""

from __future__ import annotations

import pytest

from tests.support.amqp import Client, make_broker, method, publish
from warrenmq.core.local.publisher import LocalPublisher
from warrenmq.core.message.model import Properties
from warrenmq.core.statistics.counters import Counted, MessageCounters
from warrenmq.core.vhosts import delete_vhost, put_vhost


@pytest.fixture(params=[True, False], ids=["batches", "single frames"])
def client(request: pytest.FixtureRequest) -> Client:
    """A client whose publishes are found in batches, and one whose frames are read one by one."""
    client = Client(make_broker(), fast=request.param)
    client.declare("q")
    client.call("Exchange.Declare", exchange="x", exchange_type="fanout")
    client.call("Queue.Bind", queue="q", exchange="x")
    client.declare("r")
    client.call("Queue.Bind", queue="r", exchange="x")
    return client


def counted(found: Counted) -> dict[str, int]:
    return {} if found.counters is None else values(found.counters)


def values(counters: MessageCounters) -> dict[str, int]:
    """Of the counters that are not zero."""
    fields = MessageCounters.FIELDS
    return {name: getattr(counters, name) for name in fields if getattr(counters, name)}


def total(client: Client) -> dict[str, int]:
    return values(client.broker.statistics.total)


def of_vhost(client: Client, name: str) -> dict[str, int]:
    return values(client.broker.statistics.vhost(name))


def channel_of(client: Client, number: int = 1) -> Counted:
    return client.connection.channels[number]


def queue(client: Client, name: str) -> dict[str, int]:
    return counted(client.broker.vhosts["/"].queues[name])


def exchange(client: Client, name: str) -> dict[str, int]:
    if not name:
        return counted(client.broker.statistics.default_exchange("/"))
    return counted(client.broker.vhosts["/"].exchanges[name])


def test_publishes_are_counted_by_channel_exchange_and_queue(client: Client) -> None:
    client.send("Channel.Open", 2)
    client.feed(
        publish(1, b"a", exchange="x") * 40
        + publish(2, b"b", exchange="x")
        + publish(1, b"c", routing_key="q") * 3
        + publish(1, b"d", routing_key="nowhere") * 2
        + publish(2, b"e", exchange="x") * 2
    )
    assert counted(channel_of(client, 1)) == {"publish": 45, "drop_unroutable": 2}
    assert counted(channel_of(client, 2)) == {"publish": 3}
    assert exchange(client, "x") == {"publish_in": 43, "publish_out": 86}
    assert exchange(client, "") == {"publish_in": 5, "publish_out": 3}
    assert queue(client, "q") == {"publish": 46}
    assert queue(client, "r") == {"publish": 43}
    assert total(client) == {"publish": 48, "publish_out": 89, "drop_unroutable": 2}
    assert of_vhost(client, "/") == total(client)


def test_confirms_and_returns_are_counted(client: Client) -> None:
    client.call("Confirm.Select")
    client.feed(
        publish(1, b"a", routing_key="q") * 30
        + publish(1, b"b", routing_key="nowhere", mandatory=True)
        + publish(1, b"c", routing_key="r") * 2
    )
    expected = {"publish": 33, "publish_confirm": 33, "confirm": 33, "return_unroutable": 1}
    assert counted(channel_of(client)) == expected
    assert total(client) == {**expected, "publish_out": 32}


def test_a_refused_publish_is_not_counted_as_confirmed(client: Client) -> None:
    client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.call("Confirm.Select")
    assert client.publish(b"a", routing_key="full")[0].name == "Basic.Nack"
    assert "confirm" not in counted(channel_of(client))


def test_deliveries_and_acks_are_counted(client: Client) -> None:
    client.feed(publish(1, b"a", routing_key="q") * 5)
    client.consume("q", "first")
    client.send("Basic.Ack", delivery_tag=2, multiple=True)
    client.send("Basic.Nack", delivery_tag=3)
    client.send("Basic.Reject", delivery_tag=4, requeue=True)
    expected = {"deliver": 6, "redeliver": 1, "ack": 2, "reject": 2}
    assert queue(client, "q") == {"publish": 5, **expected}
    assert counted(channel_of(client)) == {"publish": 5, **expected}
    client.consume("r", "without ack", no_ack=True)
    client.feed(publish(1, b"a", routing_key="r") * 4)
    assert queue(client, "r") == {"publish": 4, "deliver_no_ack": 4}


def test_gets_are_counted(client: Client) -> None:
    client.feed(publish(1, b"a", routing_key="q") * 2)
    client.send("Basic.Get", queue="q")
    client.send("Basic.Get", queue="q", no_ack=True)
    client.send("Basic.Get", queue="q")
    assert queue(client, "q") == {"publish": 2, "get": 1, "get_no_ack": 1, "get_empty": 1}
    assert client.broker.statistics.total.deliver_get == 2


def test_a_transaction_is_counted_when_it_is_committed(client: Client) -> None:
    client.feed(publish(1, b"a", routing_key="q") * 2)
    client.consume("q")
    client.call("Tx.Select")
    client.feed(publish(1, b"a", exchange="x") + publish(1, b"b", routing_key="r") * 2)
    client.send("Basic.Ack", delivery_tag=1)
    assert total(client)["publish"] == 2
    client.send("Tx.Rollback")
    assert exchange(client, "x") == {}
    client.feed(publish(1, b"a", exchange="x") + publish(1, b"b", routing_key="r") * 2)
    client.send("Basic.Ack", delivery_tag=2)
    client.send("Tx.Commit")
    assert total(client)["publish"] == 5
    assert total(client)["ack"] == 1
    assert exchange(client, "x") == {"publish_in": 1, "publish_out": 2}
    assert exchange(client, "") == {"publish_in": 4, "publish_out": 4}


def test_very_many_acks_are_counted(client: Client) -> None:
    client.consume("q")
    for _ in range(2_000):
        client.connection.receive(publish(1, b"a", routing_key="q"))
        client.broker.turn()
    client.send("Basic.Ack", delivery_tag=0, multiple=True)
    assert queue(client, "q")["ack"] == 2_000


def test_publishes_of_an_application_in_this_process_are_counted(client: Client) -> None:
    broker = client.broker
    publisher = LocalPublisher(broker, broker.vhosts["/"], client.connection.user)
    publisher.publish("x", "", Properties(), b"a")
    publisher.add("x", "", Properties(), [b"a", b"b"])
    publisher.flush()
    assert exchange(client, "x") == {"publish_in": 3, "publish_out": 6}
    assert total(client) == {"publish": 3, "publish_out": 6}


def test_dead_letters_are_counted_by_reason(client: Client) -> None:
    limits = {"x-dead-letter-exchange": "x", "x-max-length": 1}
    client.declare("small", arguments=limits)
    client.feed(publish(1, b"a", routing_key="small") * 3)
    client.consume("small")
    client.send("Basic.Reject", delivery_tag=1)
    assert client.broker.statistics.dead_letters == {"maxlen": 2, "rejected": 1}
    client.call("Tx.Select")
    client.publish(b"a", routing_key="small")
    client.send("Tx.Commit")
    client.send("Basic.Reject", delivery_tag=2)
    client.send("Tx.Commit")
    assert client.broker.statistics.dead_letters["rejected"] == 2


def test_churn_is_counted(client: Client) -> None:
    other = Client(client.broker)
    other.declare("s")
    other.declare("s")
    other.send("Queue.Delete", queue="s")
    other.send("Channel.Close")
    other.send("Connection.Close")
    churn = client.broker.statistics.churn
    assert {name: getattr(churn, name) for name in churn.FIELDS} == {
        "connection_created": 2, "connection_closed": 1, "channel_created": 2,
        "channel_closed": 1, "queue_declared": 4, "queue_created": 3, "queue_deleted": 1,
        "login_succeeded": 2, "login_failed": 0,
    }  # fmt: skip


def test_the_octets_of_a_connection_are_counted(client: Client) -> None:
    traffic = client.connection.output.traffic
    before = traffic.received_bytes, traffic.reads, traffic.sent_bytes, traffic.writes
    sent = method(1, "Basic.Qos", prefetch_count=1)
    client.transport.taken()
    client.connection.receive(sent)
    client.broker.turn()
    answer = len(client.transport.taken())
    after = traffic.received_bytes, traffic.reads, traffic.sent_bytes, traffic.writes
    growth = [now - then for now, then in zip(after, before, strict=True)]
    assert growth == [len(sent), 1, answer, 1]
    other = Client(client.broker)
    other.send("Connection.Close")
    total = client.broker.statistics.traffic
    assert total.reads == traffic.reads + other.connection.output.traffic.reads


def test_recreated_vhost_counts_from_zero(client: Client) -> None:
    broker = client.broker
    put_vhost(broker, "v", {})
    broker.users.set_permissions("guest", "v", ".*", ".*", ".*")
    other = Client(broker, vhost="v")
    other.publish(b"a", routing_key="q")
    assert of_vhost(client, "v")
    delete_vhost(broker, "v")
    other.come()
    broker.slices.finish()
    assert of_vhost(client, "v") == {}
