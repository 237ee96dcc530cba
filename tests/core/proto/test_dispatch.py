"""Every method of the classes that Warren speaks leads somewhere, every other is answered."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from tests.conformance import frames
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
def test_methods_for_a_client_to_send(client: Client, name: str) -> None:
    """Empty arguments may close the channel, but they don't end the connection."""
    assert "Connection.Close" not in names(client.send(name))


@pytest.mark.parametrize(
    "name",
    [name for name in every_method() if name not in FROM_CLIENTS + OF_THE_CONNECTION_ITSELF],
)
def test_methods_that_are_not(client: Client, name: str) -> None:
    (close,) = client.feed(method(1, name))
    assert (close.name, close["reply_code"]) == ("Connection.Close", 503)
    assert close["reply_text"] == (
        f"COMMAND_INVALID - {name} can't be sent by a client on a channel"
    )


def test_access_request_is_answered_for_old_clients(client: Client) -> None:
    client.connection.receive(frames.frame(1, 1, b"\x00\x1e\x00\x0a\x05/data\x1f"))
    client.broker.turn()
    assert client.transport.taken() == frames.frame(1, 1, b"\x00\x1e\x00\x0b\x00\x01")


@pytest.mark.parametrize("payload", [b"\x00\x3c\x00\x0a", b"\x00\x0a\x00", b"\x00\x32\x00\x0a\x00"])
def test_arguments_cut_short(client: Client, payload: bytes) -> None:
    (close,) = client.feed(frames.frame(1, 1, payload))
    assert (close.name, close["reply_code"]) == ("Connection.Close", 502)


@pytest.mark.parametrize("size", range(4, 11))
def test_publish_cut_short_is_told_at_once(client: Client, size: int) -> None:
    """Before its content comes."""
    payload = frames.method("Basic.Publish", exchange="a", routing_key="b")[:size]
    (close,) = client.feed(frames.frame(1, 1, payload))
    assert (close.name, close["reply_code"]) == ("Connection.Close", 502)


# -- content, frame by frame


@pytest.fixture
def cold() -> Client:
    client = Client(make_broker(), fast=False)
    client.declare("q")
    client.call("Channel.Open", 2)
    return client


def test_contents_of_two_channels_interleaved(cold: Client) -> None:
    parts = [
        [
            method(channel, "Basic.Publish", routing_key="q"),
            frames.frame(frames.HEADER, channel, frames.content_header(6)),
            frames.frame(frames.BODY, channel, body[:3]),
            frames.frame(frames.BODY, channel, body[3:]),
        ]
        for channel, body in ((1, b"abcdef"), (2, b"uvwxyz"))
    ]
    cold.feed(b"".join(one + other for one, other in zip(*parts, strict=True)))
    assert [cold.call("Basic.Get", queue="q").body for _ in range(2)] == [b"abcdef", b"uvwxyz"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frames.frame(frames.HEADER, 1, frames.content_header(0)), 505),
        (frames.frame(frames.BODY, 1, b"x"), 505),
        (method(1, "Basic.Publish") + frames.frame(frames.BODY, 1, b"x"), 505),
        (method(1, "Basic.Publish")
         + frames.frame(frames.HEADER, 1, frames.content_header(1, class_id=50)), 505),
        (method(1, "Basic.Publish")
         + frames.frame(frames.HEADER, 1, frames.content_header(0, frames.Raw(b"\x00\x00\x00"))),
         502),
    ],
)  # fmt: skip
def test_content_faults(cold: Client, data: bytes, code: int) -> None:
    (close,) = cold.feed(data)
    assert (close.name, close["reply_code"]) == ("Connection.Close", code)


def test_too_large_is_told_by_the_header_and_the_body_is_dropped(cold: Client) -> None:
    cold.broker.limits.max_message_bytes = 10
    begin = method(1, "Basic.Publish", routing_key="q")
    (close,) = cold.feed(begin + frames.frame(frames.HEADER, 1, frames.content_header(11)))
    assert (close.name, close["reply_code"], close["class_id"], close["method_id"]) == (
        "Channel.Close", 406, 60, 40,
    )  # fmt: skip
    assert cold.feed(frames.frame(frames.BODY, 1, bytes(11))) == []
    assert names(cold.feed(method(1, "Channel.CloseOk") + method(1, "Channel.Open"))) == [
        "Channel.OpenOk"
    ]


def test_the_address_is_looked_at_when_the_content_is_whole(cold: Client) -> None:
    """As RabbitMQ does: a queue that appears meanwhile gets the message."""
    message = publish(1, b"body", routing_key="late")
    cold.feed(message[:-12])
    cold.call("Queue.Declare", 2, queue="late")
    cold.feed(message[-12:])
    assert cold.messages("late") == 1
