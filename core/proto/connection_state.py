"""The states of an AMQP connection."""

from __future__ import annotations

from enum import Enum, auto


class ConnectionState(Enum):
    HANDSHAKE = auto()
    OPEN = auto()
    CLOSING = auto()
    """We sent close and wait for close-ok; everything else is discarded."""
    CLOSED = auto()
