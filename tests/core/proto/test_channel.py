"""A channel as the session of its consumers: deliveries, settling, flow, and its end."""

from __future__ import annotations

import pytest

from tests.support.amqp import (
    Client,
    make_broker,
    names,
    publish,
)


@pytest.fixture
def client() -> Client:
    client = Client(make_broker())
    client.declare("q")
    return client


def fill(client: Client, count: int = 5) -> None:
    row = (publish(1, b"%d" % number, routing_key="q") for number in range(count))
    assert client.feed(b"".join(row)) == []


# -- credit


def test_get_is_not_stopped_by_flow(client: Client) -> None:
    client.call("Channel.Flow", active=False)
    fill(client, 1)
    assert client.call("Basic.Get", queue="q").body == b"0"


# -- recover


def test_recover_requeues_deliveries_without_a_consumer(client: Client) -> None:
    fill(client, 2)
    client.send("Basic.Get", queue="q")
    client.consume("q")
    client.send("Basic.Cancel", consumer_tag="c")
    assert names(client.send("Basic.Recover", requeue=False)) == ["Basic.RecoverOk"]
    assert client.messages("q") == 2
    assert client.connection.channels[1].unacked_count == 0


# -- direct reply-to


def test_reply_consumer_may_be_replaced_after_a_cancel(client: Client) -> None:
    client.consume("amq.rabbitmq.reply-to", "a", no_ack=True)
    client.call("Basic.Cancel", consumer_tag="a")
    client.consume("amq.rabbitmq.reply-to", "b", no_ack=True)
    assert len(client.broker.vhosts["/"].replies) == 1


def test_the_direct_reply_to_name_may_be_declared(client: Client) -> None:
    assert client.call("Queue.Declare", queue="amq.rabbitmq.reply-to").name == "Queue.DeclareOk"
