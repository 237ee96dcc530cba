"""Estimates the memory of a broker's objects and buffers, beside its messages.

Flat costs per object, measured as the growth of the process by 20,000 of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..broker import Broker
    from ..proto.connection import Connection

CONNECTION_BYTES: Final = 8_000
"""With its socket."""
CHANNEL_BYTES: Final = 500
CONSUMER_BYTES: Final = 2_000
QUEUE_BYTES: Final = 500
EXCHANGE_BYTES: Final = 1_000
BINDING_BYTES: Final = 500
"""240 in a direct exchange, 720 in a topic exchange."""


def connection_bytes(connection: Connection) -> int:
    """Returns the memory of a connection with its channels, consumers and buffers."""
    channels = connection.channels
    consumers = sum(len(channel.consumers) for channel in channels.values())
    return (
        CONNECTION_BYTES
        + CHANNEL_BYTES * len(channels)
        + CONSUMER_BYTES * consumers
        + connection.buffered_bytes
    )


def shared_bytes(broker: Broker) -> int:
    """Returns the memory of queues, exchanges and bindings, and of what waits for the disk."""
    size = broker.store.progress.behind_bytes
    for vhost in broker.vhosts.values():
        exchanges = vhost.exchanges.values()
        size += QUEUE_BYTES * len(vhost.queues) + EXCHANGE_BYTES * len(exchanges)
        size += BINDING_BYTES * sum(exchange.binding_count for exchange in exchanges)
    return size
