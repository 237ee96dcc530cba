"""A connection that has ended is freed without the garbage collector, which leaves old objects
alone."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from tests.support.amqp import Client, make_broker
from warrenmq.core.proto.channel import Channel
from warrenmq.core.proto.connection import Connection


def use_nothing(client: Client) -> None:
    """A channel alone."""


def use_bindings(client: Client) -> None:
    client.call("Exchange.Declare", exchange="x", exchange_type="direct")
    client.call("Queue.Bind", queue="q", exchange="x", routing_key="k")
    client.publish(b"m", exchange="x", routing_key="k")


def use_consumers(client: Client) -> None:
    client.call("Basic.Consume", queue="q", consumer_tag="t")
    client.publish(b"m", routing_key="q")


def use_confirms(client: Client) -> None:
    client.call("Confirm.Select")
    client.publish(b"m", routing_key="q")


def use_transactions(client: Client) -> None:
    client.call("Tx.Select")
    client.publish(b"m", routing_key="q")
    client.send("Tx.Commit")


@pytest.mark.parametrize(
    "use", [use_nothing, use_bindings, use_consumers, use_confirms, use_transactions]
)
def test_a_lost_connection_is_freed_without_the_collector(use: Callable[[Client], None]) -> None:
    client = Client(make_broker())
    broker = client.broker
    client.declare("q")
    gc.disable()
    try:
        use(client)
        client.connection.lost()
        del client
        broker.turn()
        left = [one for one in gc.get_objects() if isinstance(one, Connection | Channel)]
        assert not [one for one in left if one.broker is broker]
    finally:
        gc.enable()
