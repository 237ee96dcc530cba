"""A basic.get that waits for the disk: later methods of its connection wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.life import Life, numbered
from tests.support.amqp import Client, make_broker, method, names, take_turns
from tests.support.manual_store import ManualStore
from warrenmq.core.clock import ManualClock
from warrenmq.core.errors import ConnectionFault
from warrenmq.core.proto.connection_state import ConnectionState

BEHIND = method(1, "Queue.Declare", queue="q", passive=True)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log")
    found.declare("q")
    for body in numbered(2):
        found.publish(body)
    found.get(ack=True)
    found.page_out()
    yield found
    found.abandon()


def begin(life: Life, no_ack: bool = True) -> Client:
    """A get whose message is being read, and something behind it, in one read."""
    client = life.client
    life.broker.tick()
    client.connection.receive(method(1, "Basic.Get", queue="q", no_ack=no_ack) + BEHIND)
    assert client.connection.pending.is_stopped
    assert not client.connection.pending.unfinished
    assert client.come() == []
    return client


def end(life: Life, client: Client) -> list[str]:
    life.turns()
    return names([*client.come(), *client.feed(b"")])


def test_get_ok_when_the_message_is_read(life: Life) -> None:
    client = begin(life)
    assert end(life, client) == ["Basic.GetOk", "Queue.DeclareOk"]
    assert not client.connection.pending.is_stopped


@pytest.mark.parametrize("doing", ["Queue.Purge", "Queue.Delete"])
def test_get_empty_after_messages_were_removed_during_the_read(life: Life, doing: str) -> None:
    other = life.connect()
    client = begin(life)
    other.connection.receive(method(1, doing, queue="q"))
    last = "Queue.DeclareOk" if doing == "Queue.Purge" else "Channel.Close"
    assert end(life, client) == ["Basic.GetEmpty", last]


def test_a_waiting_get_of_a_closed_channel_takes_nothing(life: Life) -> None:
    client = begin(life)
    client.connection.channels[1].release()
    life.turns()
    assert not client.connection.pending.is_stopped
    assert life.queue("q").ready_count == 1


def test_a_closing_connection_is_read_again(life: Life) -> None:
    client = begin(life)
    client.connection.fail(ConnectionFault(320, "shutdown"))
    client.feed(method(0, "Connection.CloseOk"))
    assert client.connection.state is ConnectionState.CLOSED
    take_turns(life.broker)
    assert life.queue("q").ready_count == 1


def test_get_empty_after_the_message_expired_during_the_read() -> None:
    store, clock = ManualStore(), ManualClock()
    broker = make_broker(store, clock)
    first, second = Client(broker), Client(broker)
    first.declare("q", durable=True, arguments={"x-message-ttl": 50})
    first.publish(b"x", {"delivery_mode": 2}, routing_key="q")
    store.commit()
    store.evict_all()
    assert not first.send("Basic.Get", queue="q"), "it has to be read first"
    clock.advance(60)
    take_turns(broker)
    assert names(second.send("Basic.Get", queue="q")) == ["Basic.GetEmpty"]
    store.arrive()
    take_turns(broker)
    assert names(first.come()) == ["Basic.GetEmpty"]
