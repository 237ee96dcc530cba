"""A basic.get that waits for the disk: what stands behind it waits too, and nothing is stuck."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.life import Life, numbered
from tests.support.amqp import Client, method, names, take_turns
from warrenmq.core.errors import ConnectionFault
from warrenmq.core.proto.connection import State

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
    assert client.connection.is_stopped
    assert not client.connection.unfinished
    assert client.come() == []
    return client


def end(life: Life, client: Client) -> list[str]:
    life.turns()
    return names([*client.come(), *client.feed(b"")])


def test_it_goes_on_when_the_message_was_read(life: Life) -> None:
    client = begin(life)
    assert end(life, client) == ["Basic.GetOk", "Queue.DeclareOk"]
    assert not client.connection.is_stopped


@pytest.mark.parametrize("doing", ["Queue.Purge", "Queue.Delete"])
def test_it_goes_on_when_the_messages_are_gone(life: Life, doing: str) -> None:
    other = life.connect()
    client = begin(life)
    other.connection.receive(method(1, doing, queue="q"))
    last = "Queue.DeclareOk" if doing == "Queue.Purge" else "Channel.Close"
    assert end(life, client) == ["Basic.GetEmpty", last]


def test_it_goes_on_when_its_channel_is_closed(life: Life) -> None:
    client = begin(life)
    client.connection.channels[1].release()
    life.turns()
    assert not client.connection.is_stopped
    assert life.queue("q").ready_count == 1


def test_a_connection_that_is_closed_meanwhile_is_heard(life: Life) -> None:
    client = begin(life)
    client.connection.fail(ConnectionFault(320, "shutdown"))
    client.feed(method(0, "Connection.CloseOk"))
    assert client.connection.state is State.CLOSED
    take_turns(life.broker)
    assert life.queue("q").ready_count == 1
