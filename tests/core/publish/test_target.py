"""Publish targets: messages that need a check, validity, and malformed frames."""

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


def queues(target: PublishTarget) -> list[str]:
    return [queue.name for queue in target.queues]


def test_set_routing_key_changes_envelope_and_queues(client: Client) -> None:
    target = resolve(client, exchange="amq.topic", routing_key="eu.fr")
    assert (target.envelope, queues(target)) == (b"\x09amq.topic\x05eu.fr", ["q"])
    target.set_routing_key(b"\x09amq.topic\x02us", b"us")
    assert (target.routing_key, target.envelope) == ("us", b"\x09amq.topic\x02us")
    assert queues(target) == []
    target.set_routing_key(b"\x09amq.topic\x05eu.de", b"eu.de")
    assert queues(target) == ["q"]
    with pytest.raises(ConnectionFault, match="can't be decoded") as caught:
        target.set_routing_key(b"", b"\xff")
    assert caught.value.code == 502


def test_set_routing_key_may_reach_a_headers_exchange(client: Client) -> None:
    client.call("Exchange.Bind", destination="amq.headers", source="amq.topic", routing_key="by.#")
    target = resolve(client, exchange="amq.topic", routing_key="eu.fr")
    for key, special in (("eu.fr", False), ("by.x", True), ("eu.de", False)):
        target.set_routing_key(b"", key.encode())
        assert (target.special, target.each_message) == (special, special)


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
def test_messages_that_need_a_check_are_published_alone(
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


# -- validity


def test_a_target_is_valid_until_its_queue_or_exchange_changes(client: Client) -> None:
    by_queue = resolve(client, routing_key="q")
    by_exchange = resolve(client, exchange="amq.topic", routing_key="eu.fr")
    other = resolve(client, exchange="amq.fanout")
    unwatched = resolve(client, watched=False, exchange="amq.topic", routing_key="eu.fr")
    client.call("Queue.Bind", queue="q", exchange="amq.direct")
    assert not by_exchange.route.dead
    client.call("Queue.Bind", queue="q", exchange="amq.topic", routing_key="us")
    assert (by_exchange.route.dead, by_queue.route.dead) == (True, False)
    client.call("Queue.Delete", queue="q")
    assert (by_queue.route.dead, other.route.dead, unwatched.route.dead) == (True, False, False)


def test_a_target_without_a_queue_is_not_cached(client: Client) -> None:
    assert resolve(client, routing_key="later").route.dead


# -- errors


def test_write_permission_is_checked_before_the_name(client: Client) -> None:
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
def test_malformed_methods_are_refused(client: Client, payload: bytes) -> None:
    with pytest.raises(ConnectionFault) as caught:
        read_target(client.connection.channels[1], payload, watched=False)
    assert caught.value.code == 502
