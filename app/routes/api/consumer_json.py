"""Consumers as documents, and the names of the connections that they are on."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ....core.broker import Broker
from ....core.proto.channel import Channel
from ....core.queue.consumer import Consumer
from ....core.queue.single_active import SingleActiveRing
from ...definitions.values import table_to_json
from ...node import Node

OWN: Final = "warren"
"""The connection of consumers in this process: those of subscriptions and readers over HTTP."""


class ConnectionEndpoints(NamedTuple):
    """Addresses and ports of a connection, empty and 0 where they are not known."""

    peer_host: str
    peer_port: int
    host: str
    port: int


def ends_of(connection: str) -> ConnectionEndpoints:
    """Reads the name of a connection, `address:port -> address:port`."""
    peer, _, own = connection.partition(" -> ")
    return ConnectionEndpoints(*_end(peer), *_end(own))


def _end(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return (host, int(port)) if port.isdigit() else (text, 0)


def channel_name(channel: Channel) -> str:
    return f"{channel.connection.name} ({channel.number})"


def consumer_json(consumer: Consumer, broker: Broker, node: Node) -> dict[str, Any]:
    """Returns the document of a consumer; one in this process is on a channel 0."""
    ring, queue = consumer.queue.ring, consumer.queue
    status = "up"
    if isinstance(ring, SingleActiveRing):
        status = "single_active" if ring.active is consumer else "waiting"
    return {
        "consumer_tag": consumer.tag,
        "active": status != "waiting",
        "activity_status": status,
        "ack_required": not consumer.no_ack,
        "prefetch_count": consumer.prefetch,
        "exclusive": consumer.exclusive,
        "arguments": table_to_json(consumer.arguments),
        "consumer_timeout": _timeout_ms(consumer, broker),
        "queue": {"name": queue.name, "vhost": queue.vhost},
        "channel_details": _channel_details(consumer, node),
    }


def _timeout_ms(consumer: Consumer, broker: Broker) -> int:
    rules = consumer.queue.rules
    own = None if rules is None else rules.consumer_timeout_ms
    choices = (consumer.timeout_ms, own, broker.limits.consumer_timeout_ms)
    return next(found for found in choices if found is not None)


def _channel_details(consumer: Consumer, node: Node) -> dict[str, Any]:
    channel = consumer.session
    if not isinstance(channel, Channel):
        return {
            "name": OWN, "number": 0, "connection_name": OWN, "node": node.name,
            "peer_host": "", "peer_port": 0, "user": "",
        }  # fmt: skip
    connection = channel.connection
    ends = ends_of(connection.name)
    return {
        "name": channel_name(channel),
        "number": channel.number,
        "connection_name": connection.name,
        "node": node.name,
        "peer_host": ends.peer_host,
        "peer_port": ends.peer_port,
        "user": connection.user.name,
    }
