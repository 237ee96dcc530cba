"""What a publish method frame says, and which messages have to be looked at."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import frames
from tests.support.amqp import Client, make_broker
from warrenmq.core.errors import ChannelError, ConnectionFault
from warrenmq.core.publish.target import PublishTarget, read_target


@pytest.fixture
def client() -> Client:
    client = Client(make_broker())
    client.declare("q")
    client.call("Queue.Bind", queue="q", exchange="amq.topic", routing_key="eu.#")
    return client


def resolve(client: Client, watched: bool = True, **fields: Any) -> PublishTarget:
    payload = frames.method("Basic.Publish", **fields)
    return read_target(client.connection.channels[1], payload, watched=watched)


def queues(address: PublishTarget) -> list[str]:
    return [queue.name for queue in address.queues]


def test_default_exchange(client: Client) -> None:
    address = resolve(client, routing_key="q")
    assert address.exchange is None
    assert (address.routing_key, address.number, queues(address)) == ("q", 1, ["q"])
    assert address.envelope == b"\x00\x01q"
    assert not address.special
    assert not address.confirming


def test_exchange(client: Client) -> None:
    address = resolve(client, exchange="amq.topic", routing_key="eu.fr")
    assert address.exchange is client.broker.vhosts["/"].exchanges["amq.topic"]
    assert queues(address) == ["q"]
    assert address.envelope == b"\x09amq.topic\x05eu.fr"


def test_the_same_address_with_another_key(client: Client) -> None:
    address = resolve(client, exchange="amq.topic", routing_key="eu.fr")
    address.set_routing_key(b"\x09amq.topic\x02us", b"us")
    assert (address.routing_key, address.envelope) == ("us", b"\x09amq.topic\x02us")
    assert queues(address) == []
    address.set_routing_key(b"\x09amq.topic\x05eu.de", b"eu.de")
    assert queues(address) == ["q"]


def test_a_key_that_is_not_utf_8(client: Client) -> None:
    address = resolve(client, exchange="amq.topic", routing_key="eu.fr")
    with pytest.raises(ConnectionFault, match="can't be decoded") as caught:
        address.set_routing_key(b"", b"\xff")
    assert caught.value.code == 502


def test_confirming_is_the_channels(client: Client) -> None:
    client.call("Confirm.Select")
    assert resolve(client, routing_key="q").confirming


@pytest.mark.parametrize(
    ("fields", "special"),
    [
        ({"routing_key": "q"}, False),
        ({"routing_key": "q", "mandatory": True}, False),
        ({"routing_key": "none"}, False),
        ({"routing_key": "none", "mandatory": True}, True),
        ({"routing_key": "q", "immediate": True}, True),
        ({"exchange": "amq.headers"}, True),
        ({"routing_key": "limited"}, True),
        ({"routing_key": "dropping"}, False),
        ({"exchange": "amq.topic", "routing_key": "us"}, False),
        ({"exchange": "any"}, True),
        ({"exchange": "by-key"}, False),
        ({"exchange": "by-id"}, True),
    ],
)
def test_which_messages_are_looked_at(
    client: Client, fields: dict[str, Any], special: bool
) -> None:
    client.declare("limited", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    client.declare("dropping", arguments={"x-max-length": 1})
    for exchange, kind, arguments in (
        ("any", "x-random", {}),
        ("by-key", "x-consistent-hash", {}),
        ("by-id", "x-consistent-hash", {"hash-property": "message_id"}),
    ):
        client.call("Exchange.Declare", exchange=exchange, exchange_type=kind, arguments=arguments)
        client.call("Queue.Bind", queue="q", exchange=exchange, routing_key="1")
    assert resolve(client, **fields).special is special


def test_another_key_may_lead_to_an_exchange_that_looks_at_each_message(client: Client) -> None:
    client.call("Exchange.Bind", destination="amq.headers", source="amq.topic", routing_key="by.#")
    address = resolve(client, exchange="amq.topic", routing_key="eu.fr")
    assert (address.special, address.each_message) == (False, False)
    address.set_routing_key(b"\x09amq.topic\x04by.x", b"by.x")
    assert (address.special, address.each_message) == (True, True)
    address.set_routing_key(b"\x09amq.topic\x05eu.de", b"eu.de")
    assert (address.special, address.each_message) == (False, False)


# -- how long it holds


def test_it_holds_until_its_queue_goes(client: Client) -> None:
    address, other = resolve(client, routing_key="q"), resolve(client, exchange="amq.fanout")
    client.call("Queue.Delete", queue="q")
    assert address.route.dead
    assert not other.route.dead


def test_it_holds_until_its_exchange_changes(client: Client) -> None:
    address = resolve(client, exchange="amq.topic", routing_key="eu.fr")
    client.call("Queue.Bind", queue="q", exchange="amq.fanout")
    assert not address.route.dead
    client.call("Queue.Bind", queue="q", exchange="amq.topic", routing_key="us")
    assert address.route.dead


def test_a_name_without_a_queue_is_never_remembered(client: Client) -> None:
    assert resolve(client, routing_key="later").route.dead


def test_for_a_single_use_nothing_is_watched(client: Client) -> None:
    address = resolve(client, watched=False, exchange="amq.topic", routing_key="eu.fr")
    client.call("Queue.Delete", queue="q")
    assert not address.route.dead


# -- errors


def test_unknown_exchange(client: Client) -> None:
    with pytest.raises(ChannelError, match="no exchange 'x' in vhost '/'") as caught:
        resolve(client, exchange="x")
    assert caught.value.code == 404


def test_internal_exchange(client: Client) -> None:
    with pytest.raises(ChannelError, match="cannot publish to internal exchange") as caught:
        resolve(client, exchange="amq.rabbitmq.trace")
    assert caught.value.code == 403


def test_write_access_comes_before_the_look_at_the_name(client: Client) -> None:
    client.broker.users.set_permissions("guest", "/", ".*", "", ".*")
    with pytest.raises(ChannelError, match="write access to exchange 'x' in vhost '/'") as caught:
        resolve(client, exchange="x")
    assert caught.value.code == 403


WHOLE = frames.method("Basic.Publish", exchange="ab", routing_key="cd")


@pytest.mark.parametrize(
    "payload",
    [
        *(WHOLE[:size] for size in range(4, len(WHOLE))),
        WHOLE + b"\x00",
        frames.method("Basic.Publish", exchange=b"\xff"),
        frames.method("Basic.Publish", routing_key=b"\xc3"),
    ],
)
def test_malformed(client: Client, payload: bytes) -> None:
    with pytest.raises(ConnectionFault) as caught:
        read_target(client.connection.channels[1], payload, watched=False)
    assert caught.value.code == 502
