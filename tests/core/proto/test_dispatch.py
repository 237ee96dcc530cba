"""The methods that clients may send, and their order within a read."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from tests.support.amqp import Client, make_broker, method, names, publish

FROM_CLIENTS = (
    "Channel.Flow", "Exchange.Declare", "Exchange.Delete", "Exchange.Bind", "Exchange.Unbind",
    "Queue.Declare", "Queue.Bind", "Queue.Unbind", "Queue.Purge", "Queue.Delete", "Basic.Qos",
    "Basic.Consume", "Basic.Cancel", "Basic.CancelOk", "Basic.Publish", "Basic.Get", "Basic.Ack",
    "Basic.Nack", "Basic.Reject", "Basic.Recover", "Basic.RecoverAsync", "Confirm.Select",
    "Tx.Select", "Tx.Commit", "Tx.Rollback",
)  # fmt: skip
OF_THE_CONNECTION_ITSELF = ("Channel.Open", "Channel.Close", "Channel.CloseOk")


def every_method() -> list[str]:
    known: dict[int, Any] = commands.INDEX_MAPPING
    return sorted(cls.name for cls in known.values())


@pytest.fixture
def client() -> Client:
    client = Client(make_broker())
    client.declare("")
    return client


@pytest.mark.parametrize("name", FROM_CLIENTS)
def test_methods_that_clients_may_send(client: Client, name: str) -> None:
    assert "Connection.Close" not in names(client.send(name))


@pytest.mark.parametrize(
    "name",
    [name for name in every_method() if name not in FROM_CLIENTS + OF_THE_CONNECTION_ITSELF],
)
def test_methods_that_clients_may_not_send(client: Client, name: str) -> None:
    (close,) = client.feed(method(1, name))
    assert (close.name, close["reply_code"]) == ("Connection.Close", 503)
    assert close["reply_text"] == (
        f"COMMAND_INVALID - {name} is not valid from a client on a channel"
    )


# -- content, frame by frame


@pytest.fixture
def slow() -> Client:
    client = Client(make_broker(), fast=False)
    client.declare("q")
    client.call("Channel.Open", 2)
    return client


def test_a_publish_is_routed_when_its_content_is_complete(slow: Client) -> None:
    message = publish(1, b"body", routing_key="late")
    slow.feed(message[:-12])
    slow.call("Queue.Declare", 2, queue="late")
    slow.feed(message[-12:])
    assert slow.messages("late") == 1


# -- within one read

ROW = b"".join(publish(1, b"x", routing_key="q") for _ in range(30))


@pytest.mark.parametrize(
    ("name", "left"), [("Queue.Declare", 30), ("Queue.Purge", 30), ("Basic.Get", 29)]
)
def test_publishes_of_the_same_read_are_counted(slow: Client, name: str, left: int) -> None:
    client = Client(slow.broker)
    (ok,) = client.feed(ROW + method(1, name, queue="q"))
    assert ok["message_count"] == left


@pytest.mark.parametrize("name", ["Queue.Declare", "Basic.Cancel"])
def test_publishes_of_the_same_read_are_delivered_first(slow: Client, name: str) -> None:
    client = Client(slow.broker)
    client.consume("q")
    fields = {"queue": "q"} if name == "Queue.Declare" else {"consumer_tag": "c"}
    *deliveries, ok = client.feed(ROW + method(1, name, **fields))
    assert (names(deliveries), ok.name) == (["Basic.Deliver"] * 30, f"{name}Ok")
    assert ok.fields.get("message_count", 0) == 0
