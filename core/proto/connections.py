"""The AMQP connections of a broker, with their protocol state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .connection import Connection

if TYPE_CHECKING:
    from ..broker import Broker


def connections_of(broker: Broker) -> tuple[Connection, ...]:
    """Returns the current connections."""
    return tuple(one for one in broker.connections if isinstance(one, Connection))
