"""An open connection: frame boundaries, errors, and closing."""

from __future__ import annotations

import pytest

from tests.conformance import frames
from tests.support.amqp import (
    Client,
    Reply,
    make_broker,
    method,
    names,
    publish,
    take_turns,
)
from warrenmq.core.errors import ConnectionFault

CLOSE_OK = method(0, "Connection.CloseOk")


@pytest.fixture(params=[True, False], ids=["fast", "slow"])
def client(request: pytest.FixtureRequest) -> Client:
    return Client(make_broker(), fast=request.param)


def closed(replies: list[Reply]) -> tuple[int, str]:
    close = replies[-1]
    assert close.name == "Connection.Close", replies
    return close["reply_code"], close["reply_text"]


# -- frames


def test_close_ok_is_found_where_frames_are_lost(client: Client) -> None:
    client.feed(frames.frame(9, 1, b"rubbish")[:-1])
    assert not client.transport.closed
    client.feed(b"more rubbish" + CLOSE_OK[:5])
    client.feed(CLOSE_OK[5:])
    assert client.transport.closed


def test_both_close_at_the_same_time(client: Client) -> None:
    client.feed(frames.heartbeat(1))
    assert names(client.feed(method(0, "Connection.Close"))) == ["Connection.CloseOk"]
    assert client.transport.closed


# -- channels


def test_close_ok_for_an_open_channel_is_ignored(client: Client) -> None:
    assert client.send("Channel.CloseOk") == []
    assert client.call("Basic.Qos").name == "Basic.QosOk"


def test_close_of_a_channel_may_interrupt_content(client: Client) -> None:
    assert names(
        client.feed(method(1, "Basic.Publish", routing_key="q") + method(1, "Channel.Close"))
    ) == ["Channel.CloseOk"]


# -- writing


def test_one_write_a_turn(client: Client) -> None:
    client.declare("q")
    client.consume("q")
    client.call("Confirm.Select")
    before = client.transport.writes
    client.feed(b"".join(publish(1, b"x", routing_key="q") for _ in range(100)))
    assert client.transport.writes == before + 1


def test_no_deliveries_while_the_socket_is_not_writable(client: Client) -> None:
    client.declare("q")
    client.consume("q", no_ack=True)
    publisher = Client(client.broker)
    client.connection.output.socket_writable = False
    publisher.publish(b"x", routing_key="q")
    assert client.messages("q") == 1
    client.connection.output.resume_writing()
    take_turns(client.broker)
    assert client.bodies() == [b"x"]


def test_a_turn_writes_a_bounded_amount(client: Client) -> None:
    client.declare("q")
    for _ in range(20):
        client.publish(bytes(100_000), routing_key="q")
    client.connection.receive(method(1, "Basic.Consume", queue="q", no_ack=True))
    client.broker.turn()
    assert len(client.transport.written) < 500_000
    take_turns(client.broker)
    assert len(client.bodies()) == 20


# -- the end


def test_after_an_internal_error_only_close_ok_is_handled(client: Client) -> None:
    client.connection.fail(ConnectionFault(541, "bug"))
    take_turns(client.broker)
    assert closed(client.come())[0] == 541
    client.feed(publish(1, b"x"))
    assert not client.transport.closed
    client.feed(CLOSE_OK)
    assert client.transport.closed


# -- rights and secrets


def test_abandon_releases_everything(client: Client) -> None:
    client.declare("q", exclusive=True)
    client.connection.abandon()
    take_turns(client.broker)
    assert client.transport.closed
    assert client.come() == []
    assert client.broker.vhosts["/"].queues == {}
    assert client.broker.connections == {}
    client.connection.abandon()
    client.connection.lost()


def test_revoked_permissions_apply_to_the_next_publish(client: Client) -> None:
    client.declare("q")
    row = b"".join(publish(1, b"x", routing_key="q") for _ in range(30))
    client.feed(row)
    client.broker.users.set_permissions("guest", "/", ".*", "", ".*")
    (close,) = client.feed(row)
    assert close["reply_text"] == (
        "ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for user "
        "'guest'"
    )
    assert client.messages("q") == 30
