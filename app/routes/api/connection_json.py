"""Connections and channels as documents."""

from __future__ import annotations

from typing import Any

from ....core.proto.channel import Channel
from ....core.proto.connection import Connection
from ....core.proto.connection_state import ConnectionState
from ...definitions.values import table_to_json
from ...node import Node
from .consumer_json import channel_name, consumer_json, ends_of
from .view import View


def connection_json(connection: Connection, view: View, node: Node) -> dict[str, Any]:
    """Returns the document of an open connection; without statistics if the view has none."""
    ends = ends_of(connection.name)
    properties = table_to_json(connection.client_properties)
    tls = connection.tls
    found = {
        "name": connection.name,
        "user_provided_name": properties.get("connection_name"),
        "node": node.name,
        "type": "network",
        "protocol": "AMQP 0-9-1",
        "vhost": connection.vhost.name,
        "user": connection.user.name,
        "user_who_performed_action": connection.user.name,
        "auth_mechanism": connection.mechanism,
        "connected_at": connection.connected_at_ms,
        "client_properties": properties,
        "host": ends.host,
        "port": ends.port,
        "peer_host": ends.peer_host,
        "peer_port": ends.peer_port,
        "ssl": tls is not None,
        "ssl_protocol": None if tls is None else tls.protocol,
        "ssl_cipher": None if tls is None else tls.cipher,
        "state": _state(connection),
        "channels": len(connection.channels),
        "channel_max": connection.channel_max,
        "frame_max": connection.frame_max,
        "timeout": connection.heartbeat_s,
    }
    if view.shows_all:
        found |= view.traffic_of(connection.output.traffic)
        found["send_pend"] = connection.buffered_bytes
    return found


def _state(connection: Connection) -> str:
    if connection.state is not ConnectionState.OPEN:
        return "closing"
    if connection.pending.blocked:
        return "blocked"
    return "blocking" if connection.broker.alarms.any else "running"


def channel_json(channel: Channel, view: View, node: Node) -> dict[str, Any]:
    """Returns the document of a channel in a list."""
    connection, transaction = channel.connection, channel.transaction
    ends = ends_of(connection.name)
    settled = 0 if transaction is None else transaction.settled
    found = {
        "name": channel_name(channel),
        "number": channel.number,
        "node": node.name,
        "vhost": connection.vhost.name,
        "user": connection.user.name,
        "user_who_performed_action": connection.user.name,
        "state": "flow" if channel.flow_stopped else "running",
        "confirm": channel.confirming,
        "transactional": transaction is not None,
        "consumer_count": len(channel.consumers),
        "prefetch_count": channel.default_prefetch,
        "global_prefetch_count": channel.prefetch,
        "messages_unacknowledged": channel.deliveries.unacked.count,
        "messages_unconfirmed": 0 if channel.confirms is None else channel.confirms.unanswered,
        "messages_uncommitted": 0 if transaction is None else transaction.published,
        "acks_uncommitted": settled,
        "connection_details": {
            "name": connection.name,
            "peer_host": ends.peer_host,
            "peer_port": ends.peer_port,
        },
    }
    if view.shows_all:
        found["message_stats"] = view.message_stats(channel.counters)
    return found


def single_channel_json(channel: Channel, view: View, node: Node) -> dict[str, Any]:
    """Returns the document of a channel, as `channel_json`, with its consumers."""
    consumers = [consumer_json(one, view.broker, node) for one in channel.consumers.values()]
    found = channel_json(channel, view, node)
    return {**found, "consumer_details": consumers, "publishes": [], "deliveries": []}
