"""Incomplete messages: permissions, memory limits, and what ends them."""

from __future__ import annotations

import pytest

from tests.conformance import frames
from tests.support.amqp import Client, Reply, make_broker, method, names, take_turns
from warrenmq.core.broker import Broker
from warrenmq.core.context import BrokerLimits
from warrenmq.core.resources.alarms import Bounds

MIB = 2**20
FRAME_MAX = 131_072


@pytest.fixture
def broker() -> Broker:
    broker = make_broker(limits=BrokerLimits(max_message_bytes=MIB))
    broker.users.add("alice", "secret")
    broker.users.set_permissions("alice", "/", "", "", ".*")
    return broker


def begun(size: int, come: int, channel: int = 1) -> bytes:
    """A message of `size` bytes up to `come` of them."""
    head = method(channel, "Basic.Publish", routing_key="q")
    header = frames.frame(frames.HEADER, channel, frames.content_header(size, None))
    return head + header + frames.body_frames(channel, bytes(come), FRAME_MAX)


def rest(size: int, come: int, channel: int = 1) -> bytes:
    return frames.body_frames(channel, bytes(size - come), FRAME_MAX)


def refusal(replies: list[Reply]) -> tuple[int, str]:
    (close,) = replies
    assert close.name == "Channel.Close"
    return close["reply_code"], close["reply_text"]


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "slow"])
def test_a_publish_without_permission_is_refused_at_its_method(broker: Broker, fast: bool) -> None:
    client = Client(broker, user="alice", fast=fast)
    code, text = refusal(client.send("Basic.Publish", routing_key="q"))
    assert code == 403
    assert "write access to exchange 'amq.default'" in text
    header = frames.frame(frames.HEADER, 1, frames.content_header(MIB, None))
    assert client.feed(header + rest(MIB, 0)) == []
    assert broker.alarms.unfinished.bytes == 0
    assert names(client.send("Channel.CloseOk") + client.send("Channel.Open")) == ["Channel.OpenOk"]


def test_permissions_revoked_during_a_message(broker: Broker) -> None:
    broker.users.set_permissions("alice", "/", "", ".*", "")
    client = Client(broker, user="alice")
    client.feed(begun(MIB, MIB // 2))
    broker.users.set_permissions("alice", "/", "", "", "")
    assert refusal(client.feed(rest(MIB, MIB // 2)))[0] == 403


def test_incomplete_messages_of_a_connection_are_bounded(broker: Broker) -> None:
    client = Client(broker)
    client.declare("q")
    for channel in range(2, 10):
        client.call("Channel.Open", channel)
    for channel in range(1, 9):
        # Eight of the largest, but for the property lists.
        assert client.feed(begun(MIB - 2, 100, channel)) == []
    code, text = refusal(client.feed(begun(MIB, 0, 9)))
    assert code == 311
    assert "too many bytes of incomplete messages on this connection: " in text
    for channel in range(1, 9):
        assert client.feed(rest(MIB - 2, 100, channel)) == []
    assert client.messages("q") == 8
    assert broker.alarms.unfinished.bytes == 0


def test_a_user_above_its_share_waits_for_its_own_messages(broker: Broker) -> None:
    broker.alarms.bounds = Bounds(memory=6 * MIB)
    first, second, third = (Client(broker) for _ in range(3))
    first.declare("q")
    assert first.feed(begun(MIB, 200_000)) == []
    assert second.feed(begun(MIB, 200_000)) == []
    assert second.connection.pending.is_stopped
    # Who publishes what is whole has nothing to wait for.
    third.publish(b"small", routing_key="q")
    assert third.messages("q") == 1
    assert first.feed(rest(MIB, 200_000)) == []
    assert (second.transport.times_unblocked, second.connection.pending.is_stopped) == (1, False)
    second.feed(rest(MIB, 200_000))
    assert third.messages("q") == 3


def test_a_second_message_of_a_connection_does_not_wait(broker: Broker) -> None:
    broker.alarms.bounds = Bounds(memory=6 * MIB)
    client = Client(broker)
    client.declare("q")
    client.call("Channel.Open", 2)
    client.feed(begun(MIB, 100, 1))
    code, text = refusal(client.feed(begun(MIB, 0, 2)))
    assert (code, "the incomplete messages of this user exceed" in text) == (311, True)
    assert client.feed(rest(MIB, 100, 1)) == []
    assert client.messages("q") == 1


def test_a_lost_connection_frees_its_memory(broker: Broker) -> None:
    broker.alarms.bounds = Bounds(memory=6 * MIB)
    first, second, third = (Client(broker) for _ in range(3))
    for client in (first, second, third):
        client.feed(begun(MIB, 100))
    second.connection.lost()
    first.connection.lost()
    assert not third.connection.pending.is_stopped
    third.connection.lost()
    assert broker.alarms.unfinished.bytes == 0


def test_incomplete_messages_are_ended_before_an_alarm(broker: Broker) -> None:
    broker.alarms.bounds = Bounds(memory=100 * MIB)
    holder, other = Client(broker), Client(broker)
    other.declare("q")
    holder.feed(begun(MIB, MIB - 1_000))
    broker.alarms.bounds = Bounds(memory=MIB)
    take_turns(broker)
    assert not broker.alarms.memory
    code, text = refusal(holder.come())
    assert (code, "memory is short" in text) == (311, True)
    assert holder.feed(rest(MIB, MIB - 1_000)) == []
    assert names(holder.send("Channel.CloseOk") + holder.send("Channel.Open")) == ["Channel.OpenOk"]
    other.publish(b"passes", routing_key="q")
    assert other.messages("q") == 1


def test_a_waiting_message_that_is_ended_resumes_reading(broker: Broker) -> None:
    broker.alarms.bounds = Bounds(memory=6 * MIB)
    first, second = Client(broker), Client(broker)
    for client in (first, second):
        client.feed(begun(MIB, 100_000))
    broker.alarms.unfinished.shrink(0)
    take_turns(broker)
    assert not second.connection.pending.is_stopped
    assert names(second.feed(method(1, "Channel.CloseOk"))) == ["Channel.Close"]


def test_a_waiting_connection_buffers_its_input(broker: Broker) -> None:
    broker.alarms.bounds = Bounds(memory=6 * MIB)
    first, second = Client(broker), Client(broker)
    for client in (first, second):
        client.feed(begun(MIB, 0))
    read = rest(MIB, 0)
    assert second.feed(read[:100_000]) == []
    assert second.feed(read[100_000:] + frames.heartbeat()) == []
    assert broker.alarms.unfinished.bytes < 10_000
    first.connection.lost()
    other = Client(broker)
    other.declare("q")
    second.feed(b"")
    assert other.messages("q") == 1
