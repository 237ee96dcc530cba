"""Messages that come in part: who may begin one, how much of them, and what ends them."""

from __future__ import annotations

import pytest

from tests.conformance import frames
from tests.support.amqp import Client, Reply, make_broker, method, names, take_turns
from warrenmq.core.broker import Broker, Limits
from warrenmq.core.resources.alarms import Bounds

MIB = 2**20
FRAME_MAX = 131_072


@pytest.fixture
def broker() -> Broker:
    broker = make_broker(limits=Limits(max_message_bytes=MIB))
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


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "cold"])
def test_who_may_not_publish_is_told_at_the_method(broker: Broker, fast: bool) -> None:
    client = Client(broker, user="alice", fast=fast)
    code, text = refusal(client.send("Basic.Publish", routing_key="q"))
    assert code == 403
    assert "write access to exchange 'amq.default'" in text
    header = frames.frame(frames.HEADER, 1, frames.content_header(MIB, None))
    assert client.feed(header + rest(MIB, 0)) == []
    assert broker.alarms.unfinished.bytes == 0
    assert names(client.send("Channel.CloseOk") + client.send("Channel.Open")) == ["Channel.OpenOk"]


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "cold"])
def test_an_unknown_exchange_is_told_at_the_method(broker: Broker, fast: bool) -> None:
    client = Client(broker, fast=fast)
    code, text = refusal(client.send("Basic.Publish", exchange="none", routing_key="k"))
    assert (code, "no exchange 'none'" in text) == (404, True)


def test_rights_that_end_meanwhile_end_the_message(broker: Broker) -> None:
    broker.users.set_permissions("alice", "/", "", ".*", "")
    client = Client(broker, user="alice")
    client.feed(begun(MIB, MIB // 2))
    broker.users.set_permissions("alice", "/", "", "", "")
    assert refusal(client.feed(rest(MIB, MIB // 2)))[0] == 403


def test_a_connection_has_a_bounded_amount_under_way(broker: Broker) -> None:
    client = Client(broker)
    client.declare("q")
    for channel in range(2, 10):
        client.call("Channel.Open", channel)
    for channel in range(1, 9):
        # Eight of the largest, but for the property lists.
        assert client.feed(begun(MIB - 2, 100, channel)) == []
    code, text = refusal(client.feed(begun(MIB, 0, 9)))
    assert code == 311
    assert "bytes of unfinished messages on one connection, the limit is 8388608" in text
    for channel in range(1, 9):
        assert client.feed(rest(MIB - 2, 100, channel)) == []
    assert client.messages("q") == 8
    assert broker.alarms.unfinished.bytes == 0


def test_a_user_over_its_share_waits_for_itself(broker: Broker) -> None:
    broker.alarms.bounds = Bounds(memory=6 * MIB)
    first, second, third = (Client(broker) for _ in range(3))
    first.declare("q")
    assert first.feed(begun(MIB, 200_000)) == []
    assert second.feed(begun(MIB, 200_000)) == []
    assert second.connection.is_stopped
    # Who publishes what is whole has nothing to wait for.
    third.publish(b"small", routing_key="q")
    assert third.messages("q") == 1
    assert first.feed(rest(MIB, 200_000)) == []
    assert (second.transport.times_unblocked, second.connection.is_stopped) == (1, False)
    second.feed(rest(MIB, 200_000))
    assert third.messages("q") == 3


def test_who_waits_beside_others_of_the_same_connection_is_refused(broker: Broker) -> None:
    """They could not go on while it waits."""
    broker.alarms.bounds = Bounds(memory=6 * MIB)
    client = Client(broker)
    client.declare("q")
    client.call("Channel.Open", 2)
    client.feed(begun(MIB, 100, 1))
    code, text = refusal(client.feed(begun(MIB, 0, 2)))
    assert (code, "beside the user's other unfinished messages" in text) == (311, True)
    assert client.feed(rest(MIB, 100, 1)) == []
    assert client.messages("q") == 1


def test_a_connection_that_ends_makes_room(broker: Broker) -> None:
    broker.alarms.bounds = Bounds(memory=6 * MIB)
    first, second, third = (Client(broker) for _ in range(3))
    for client in (first, second, third):
        client.feed(begun(MIB, 100))
    second.connection.lost()
    first.connection.lost()
    assert not third.connection.is_stopped
    third.connection.lost()
    assert broker.alarms.unfinished.bytes == 0


def test_unfinished_messages_go_before_others_wait(broker: Broker) -> None:
    """The sender decides how long they stay: nobody else may pay for them."""
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


def test_one_that_waits_for_room_is_heard_when_it_has_to_go(broker: Broker) -> None:
    broker.alarms.bounds = Bounds(memory=6 * MIB)
    first, second = Client(broker), Client(broker)
    for client in (first, second):
        client.feed(begun(MIB, 100_000))
    broker.alarms.unfinished.shrink(0)
    take_turns(broker)
    assert not second.connection.is_stopped
    assert names(second.feed(method(1, "Channel.CloseOk"))) == ["Channel.Close"]


def test_a_connection_that_waits_takes_nothing_more(broker: Broker) -> None:
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
