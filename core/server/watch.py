"""Looks at every peer twice a second: heartbeats, stuck handshakes, unfinished frames."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ..proto.connection import State
from ..proto.half_frame import HALF_FRAME_S, PROGRESS_BYTES
from ..wire.frames import HEARTBEAT_FRAME

if TYPE_CHECKING:
    from .listener import Listener
    from .peer import Peer

logger = logging.getLogger(__name__)

HANDSHAKE_S = 10
CLOSE_OK_S = 10
"""How long a client may take to answer close, or to close its socket behind our answer."""
_PERIOD_S = 0.5
_STALL_MS = 1_500


async def watch_peers(listener: Listener) -> None:
    """One task for all: a timer per connection would cost 8,000 idle ones a wake-up each."""
    clock = listener.broker.clock
    while True:
        asleep_ms = clock.now_ms()
        await asyncio.sleep(_PERIOD_S)
        if clock.now_ms() - asleep_ms > _STALL_MS:
            # This process stood still (a stopped process, a sleeping machine): what clients sent
            # meanwhile waits in their sockets and is read before they are judged.
            continue
        look_after(listener)


def look_after(listener: Listener) -> None:
    """One look at every peer; a turn then sends the heartbeats that are due."""
    listener.broker.tick()
    for peer in list(listener.peers):
        reason = _overdue(peer, listener.broker.now_ms)
        if reason:
            logger.warning("connection %s: %s", peer.connection.name, reason)
            peer.abort()
    listener.turn()


def _overdue(peer: Peer, now_ms: int) -> str | None:
    """Why the peer must go; sends a heartbeat if one is due (AMQP 0-9-1 4.2.7)."""
    connection = peer.connection
    if connection.state is State.HANDSHAKE:
        if connection.handshake is not None and connection.handshake.paused:
            # It waits for us: its password stands in line to be checked.
            connection.started_ms = now_ms
        if now_ms - connection.started_ms > HANDSHAKE_S * 1000:
            return f"no handshake within {HANDSHAKE_S} s"
        return None
    if connection.state is not State.OPEN:
        # Closed, its socket would stay for good if it neither read our words nor hung up.
        if now_ms - connection.closing_since_ms > CLOSE_OK_S * 1000:
            return f"the socket was not closed within {CLOSE_OK_S} s"
        return None
    if peer.held:
        connection.half_frame.since_ms = now_ms
        if peer.barred or peer.takes_output():
            # Its heartbeats are not heard while it is not read. That is our doing, or it lives.
            connection.received_ms = now_ms
    if connection.has_half_frame and connection.half_frame.is_late(now_ms):
        return f"a frame was not finished within {HALF_FRAME_S} s, nor {PROGRESS_BYTES} bytes of it"
    heartbeat_ms = connection.heartbeat_s * 1000
    if heartbeat_ms:
        if now_ms - connection.received_ms > 2 * heartbeat_ms:
            return f"missed heartbeats: nothing came for {2 * connection.heartbeat_s} s"
        if now_ms - connection.sent_ms >= heartbeat_ms // 2:
            connection.write(HEARTBEAT_FRAME)
    return None
