"""A connection stops at its first publish while there is an alarm, and goes on behind it."""

from __future__ import annotations

import logging

import pytest

from tests.conformance import frames
from tests.support.amqp import Client, make_broker, method, names, publish, take_turns
from warrenmq.core.broker import Broker
from warrenmq.core.errors import ConnectionFault
from warrenmq.core.proto.connection import State
from warrenmq.core.resources.alarms import Bounds, Reading

ALARM = Reading(disk_free_bytes=0)
OVER = Reading(disk_free_bytes=10**9)


@pytest.fixture
def broker() -> Broker:
    broker = make_broker()
    broker.alarms.bounds = Bounds(disk_free=1000)
    return broker


@pytest.fixture(params=[True, False], ids=["fast", "cold"])
def client(request: pytest.FixtureRequest, broker: Broker) -> Client:
    client = Client(broker, fast=request.param, tells_blocks=True)
    client.declare("q")
    return client


def raise_alarm(broker: Broker) -> None:
    broker.alarms.measure(ALARM)


def is_blocked(client: Client) -> bool:
    return client.connection.blocked


def has_rest(client: Client) -> bool:
    return client.connection.unfinished


def reason(broker: Broker) -> str:
    return broker.alarms.reason


def end_alarm(broker: Broker) -> None:
    broker.alarms.measure(OVER)
    take_turns(broker)


def test_it_stops_at_the_publish_and_goes_on_behind_the_alarm(
    broker: Broker, client: Client
) -> None:
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
    assert not has_rest(client)
    assert client.messages("q") == 0
    end_alarm(broker)
    assert client.transport.times_unblocked == 1
    assert not is_blocked(client)
    assert has_rest(client)
    assert names(client.feed(b"")) == ["Connection.Unblocked", "Queue.DeclareOk"]
    assert client.messages("q") == 2


def test_what_is_read_all_the_same_keeps_its_place(broker: Broker, client: Client) -> None:
    """A read may be under way when reading is paused."""
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


def test_many_alike_messages_behind_a_large_read(broker: Broker, client: Client) -> None:
    raise_alarm(broker)
    message = publish(1, b"x" * 16, routing_key="q")
    stream = message * 4000
    client.feed(stream[:30])
    client.feed(stream[30:])
    assert client.messages("q") == 0
    end_alarm(broker)
    client.feed(b"")
    assert client.messages("q") == 4000


def test_who_does_not_publish_notices_nothing(broker: Broker, client: Client) -> None:
    client.publish(b"one", routing_key="q")
    client.publish(b"two", routing_key="q")
    raise_alarm(broker)
    reader = Client(broker, tells_blocks=True)
    assert len(reader.consume("q")) == 2
    assert reader.send("Basic.Ack", delivery_tag=1) == []
    assert names(reader.send("Basic.Reject", delivery_tag=2, requeue=True)) == ["Basic.Deliver"]
    assert reader.send("Basic.Ack", delivery_tag=3) == []
    assert client.messages("q") == 0
    assert names(reader.send("Channel.Close")) == ["Channel.CloseOk"]
    end_alarm(broker)
    assert reader.come() == []
    assert reader.transport.times_unblocked == 0


def test_dead_letters_pass(broker: Broker, client: Client) -> None:
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


def test_a_message_half_sent_stays_half(broker: Broker, client: Client) -> None:
    message = publish(1, bytes(20_000), frame_max=10_008, routing_key="q")
    client.feed(message[:-10_008])
    raise_alarm(broker)
    assert names(client.feed(message[-10_008:])) == ["Connection.Blocked"]
    end_alarm(broker)
    client.feed(b"")
    assert client.messages("q") == 1


def test_a_client_that_cannot_take_it_is_not_told(broker: Broker, client: Client) -> None:
    silent = Client(broker)
    raise_alarm(broker)
    assert silent.publish(b"one", routing_key="q") == []
    assert silent.connection.blocked
    end_alarm(broker)
    assert silent.feed(b"") == []
    assert client.messages("q") == 1


def test_it_is_told_once_per_alarm(broker: Broker, client: Client) -> None:
    for _ in range(2):
        raise_alarm(broker)
        message = publish(1, b"one", routing_key="q")
        assert names(client.feed(message)) == ["Connection.Blocked"]
        assert client.feed(message) == []
        end_alarm(broker)
        assert names(client.feed(b"")) == ["Connection.Unblocked"]
    assert client.messages("q") == 4


def test_an_alarm_may_come_again_before_the_rest_is_read(broker: Broker, client: Client) -> None:
    raise_alarm(broker)
    client.feed(publish(1, b"one", routing_key="q"))
    end_alarm(broker)
    raise_alarm(broker)
    assert names(client.feed(b"")) == ["Connection.Unblocked", "Connection.Blocked"]
    assert client.messages("q") == 0
    end_alarm(broker)
    client.feed(b"")
    assert client.messages("q") == 1


def test_the_memory_of_messages_is_looked_at_in_every_turn(broker: Broker, client: Client) -> None:
    broker.alarms.bounds = Bounds(memory=80_000)
    client.publish(bytes(70_000), routing_key="q")
    assert reason(broker) == ""
    client.publish(bytes(10_000), routing_key="q")
    assert reason(broker) == "low on memory"
    replies = client.publish(b"more", routing_key="q")
    assert replies[0]["reason"] == "low on memory"
    reader = Client(broker)
    reader.consume("q", no_ack=True)
    assert reason(broker) == ""
    assert names(client.come()) == ["Connection.Unblocked"]


def test_a_close_that_stands_behind_a_publish_waits_but_an_end_does_not(
    broker: Broker, client: Client
) -> None:
    raise_alarm(broker)
    client.feed(publish(1, b"one", routing_key="q") + method(0, "Connection.Close"))
    client.come()
    client.connection.lost()
    assert client.transport.times_unblocked == 1
    end_alarm(broker)
    assert client.transport.times_unblocked == 1
    assert client.messages("q") == 0


def test_a_blocked_connection_that_is_closed_is_heard_again(broker: Broker, client: Client) -> None:
    raise_alarm(broker)
    client.feed(publish(1, b"one", routing_key="q"))
    client.connection.fail(ConnectionFault(320, "shutdown"))
    assert client.connection.unfinished
    assert client.transport.times_unblocked == 1
    assert names(client.feed(b"")) == ["Connection.Close"]
    client.feed(method(0, "Connection.CloseOk"))
    assert client.connection.state is State.CLOSED
    assert client.messages("q") == 0


def test_a_blocked_connection_has_nothing_to_go_on_with(broker: Broker, client: Client) -> None:
    """Not even if it would have to rest anyway: it would be asked in every round of the loop."""
    raise_alarm(broker)
    client.connection.socket_writable = False
    client.feed(publish(1, b"one", routing_key="q"))
    assert is_blocked(client)
    assert not has_rest(client)


def test_errors_are_told_as_ever(broker: Broker, client: Client) -> None:
    raise_alarm(broker)
    replies = client.feed(frames.frame(frames.BODY, 1, b"x"))
    assert names(replies) == ["Connection.Close"]
    assert replies[0]["reply_code"] == 505


def test_its_own_acks_stand_behind_the_publish_and_the_log_says_so(
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
