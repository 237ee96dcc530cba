"""Alarms: a connection stops at its first publish until the alarm is over."""

from __future__ import annotations

import logging

import pytest

from tests.support.amqp import Client, make_broker, method, names, publish, take_turns
from warrenmq.core.broker import Broker
from warrenmq.core.errors import ConnectionFault
from warrenmq.core.proto.connection_state import ConnectionState
from warrenmq.core.resources.alarms import Bounds, Reading

ALARM = Reading(disk_free_bytes=0)
OVER = Reading(disk_free_bytes=10**9)


@pytest.fixture
def broker() -> Broker:
    broker = make_broker()
    broker.alarms.bounds = Bounds(disk_free=1000)
    return broker


@pytest.fixture(params=[True, False], ids=["fast", "slow"])
def client(request: pytest.FixtureRequest, broker: Broker) -> Client:
    client = Client(broker, fast=request.param, tells_blocks=True)
    client.declare("q")
    return client


def raise_alarm(broker: Broker) -> None:
    broker.alarms.measure(ALARM)


def is_blocked(client: Client) -> bool:
    return client.connection.pending.blocked


def is_unfinished(client: Client) -> bool:
    return client.connection.pending.unfinished


def end_alarm(broker: Broker) -> None:
    broker.alarms.measure(OVER)
    take_turns(broker)


def test_reading_stops_at_a_publish_until_the_alarm_is_over(broker: Broker, client: Client) -> None:
    raise_alarm(broker)
    replies = client.feed(
        method(1, "Queue.Declare", queue="before")
        + publish(1, b"one", routing_key="q")
        + method(1, "Queue.Declare", queue="behind")
        + publish(1, b"two", routing_key="q")
    )
    assert names(replies) == ["Queue.DeclareOk", "Connection.Blocked"]
    assert replies[1]["reason"] == "low on disk"
    assert is_blocked(client)
    assert not is_unfinished(client)
    assert client.messages("q") == 0
    end_alarm(broker)
    assert client.transport.times_unblocked == 1
    assert not is_blocked(client)
    assert is_unfinished(client)
    assert names(client.feed(b"")) == ["Connection.Unblocked", "Queue.DeclareOk"]
    assert client.messages("q") == 2


def test_input_read_while_blocked_keeps_its_order(broker: Broker, client: Client) -> None:
    raise_alarm(broker)
    client.feed(publish(1, b"one", routing_key="q"))
    assert client.feed(publish(1, b"two", routing_key="q")[:10]) == []
    assert client.feed(publish(1, b"two", routing_key="q")[10:]) == []
    end_alarm(broker)
    client.feed(b"")
    client.consume("q")
    assert [reply.body for reply in client.replies if reply.name == "Basic.Deliver"] == [
        b"one", b"two",
    ]  # fmt: skip


def test_dead_letters_are_not_blocked(broker: Broker, client: Client) -> None:
    client.declare("dead")
    client.declare(
        "dying",
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    )
    client.publish(b"one", routing_key="dying")
    raise_alarm(broker)
    reader = Client(broker)
    reader.consume("dying")
    reader.send("Basic.Reject", delivery_tag=1, requeue=False)
    assert client.messages("dead") == 1


def test_an_incomplete_message_waits_for_the_end_of_the_alarm(
    broker: Broker, client: Client
) -> None:
    message = publish(1, bytes(20_000), frame_max=10_008, routing_key="q")
    client.feed(message[:-10_008])
    raise_alarm(broker)
    assert names(client.feed(message[-10_008:])) == ["Connection.Blocked"]
    end_alarm(broker)
    client.feed(b"")
    assert client.messages("q") == 1


def test_blocked_is_sent_once_per_alarm(broker: Broker, client: Client) -> None:
    for _ in range(2):
        raise_alarm(broker)
        message = publish(1, b"one", routing_key="q")
        assert names(client.feed(message)) == ["Connection.Blocked"]
        assert client.feed(message) == []
        end_alarm(broker)
        assert names(client.feed(b"")) == ["Connection.Unblocked"]
    assert client.messages("q") == 4


def test_second_alarm_blocks_before_the_rest_is_handled(broker: Broker, client: Client) -> None:
    raise_alarm(broker)
    client.feed(publish(1, b"one", routing_key="q"))
    end_alarm(broker)
    raise_alarm(broker)
    assert names(client.feed(b"")) == ["Connection.Unblocked", "Connection.Blocked"]
    assert client.messages("q") == 0
    end_alarm(broker)
    client.feed(b"")
    assert client.messages("q") == 1


def test_memory_is_checked_in_every_turn(broker: Broker, client: Client) -> None:
    broker.alarms.bounds = Bounds(memory=80_000)
    client.publish(bytes(70_000), routing_key="q")
    assert broker.alarms.reason == ""
    client.publish(bytes(10_000), routing_key="q")
    assert broker.alarms.reason == "low on memory"
    replies = client.publish(b"more", routing_key="q")
    assert replies[0]["reason"] == "low on memory"
    reader = Client(broker)
    reader.consume("q", no_ack=True)
    assert broker.alarms.reason == ""
    assert names(client.come()) == ["Connection.Unblocked"]


def test_a_lost_socket_ends_a_blocked_connection(broker: Broker, client: Client) -> None:
    raise_alarm(broker)
    client.feed(publish(1, b"one", routing_key="q") + method(0, "Connection.Close"))
    client.come()
    client.connection.lost()
    assert client.transport.times_unblocked == 1
    end_alarm(broker)
    assert client.transport.times_unblocked == 1
    assert client.messages("q") == 0


def test_a_forced_close_ends_the_block(broker: Broker, client: Client) -> None:
    raise_alarm(broker)
    client.feed(publish(1, b"one", routing_key="q"))
    client.connection.fail(ConnectionFault(320, "shutdown"))
    assert is_unfinished(client)
    assert client.transport.times_unblocked == 1
    assert names(client.feed(b"")) == ["Connection.Close"]
    client.feed(method(0, "Connection.CloseOk"))
    assert client.connection.state is ConnectionState.CLOSED
    assert client.messages("q") == 0


def test_acks_after_a_blocked_publish_wait_and_are_logged(
    broker: Broker, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.publish(b"one", routing_key="q")
    client.consume("q")
    raise_alarm(broker)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        client.feed(publish(1, b"two", routing_key="q") + method(1, "Basic.Ack", delivery_tag=1))
    (line,) = caplog.messages
    assert "blocked, low on disk" in line
    assert "acks of its 1 unacked" in line
    assert client.connection.channels[1].unacked_count == 1
    end_alarm(broker)
    client.feed(b"")
    assert client.connection.channels[1].unacked_count == 1  # of the second message
