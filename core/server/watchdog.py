"""Looks at every peer twice a second: heartbeats, stuck handshakes, unfinished frames and messages.

A peer that is not read for want of memory or disk can't be judged by what it sends. Of such ones
the sockets are asked whether the other side is still there."""

from __future__ import annotations

import asyncio
import logging
import select
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..proto.connection import State
from ..proto.half_frame import HALF_FRAME_S, PROGRESS_BYTES
from ..slices import for_each
from ..wire.frames import HEARTBEAT_FRAME

if TYPE_CHECKING:
    from .listener import Listener
    from .peer import Peer

logger = logging.getLogger(__name__)

HANDSHAKE_S = 10
CLOSE_OK_S = 10
"""How long a client may take to answer close, or to close its socket behind our answer."""
GONE_S = 30
"""A peer that is not read and has hung up at two looks so far apart is ended with what it holds."""
_GONE_EVENTS = getattr(select, "POLLRDHUP", 0)
"""Linux; elsewhere a connection that was reset is noticed, one that was closed is not."""
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
    """One look at every peer, in slices; turns then send the heartbeats that are due."""
    listener.broker.tick()

    def look(peer: Peer) -> None:
        reason = _overdue(peer, listener.broker.now_ms) if peer in listener.peers else None
        if reason:
            logger.warning("connection %s: %s", peer.connection.name, reason)
            peer.abort()

    listener.broker.slices.start(for_each(list(listener.peers), look))
    if listener.broker.now_ms - listener.asked_sockets_ms >= GONE_S * 1000:
        listener.asked_sockets_ms = listener.broker.now_ms
        _end_gone(listener)
    listener.turn()


def _end_gone(listener: Listener) -> None:
    gone = _hung_up(peer for peer in listener.peers if peer.barred)
    for peer in gone & listener.gone_peers:
        logger.warning(
            "connection %s: it hung up more than %d s ago, while it was not read",
            peer.connection.name,
            GONE_S,
        )
        peer.abort()
    listener.gone_peers = gone


def _hung_up(peers: Iterable[Peer]) -> set[Peer]:
    """Whose other side has closed or reset the connection, or does not answer any more."""
    poll, by_file = select.poll(), {}
    for peer in peers:
        by_file[peer.fileno] = peer
        poll.register(peer.fileno, _GONE_EVENTS)
    return {by_file[file] for file, events in poll.poll(0) if not events & select.POLLNVAL}


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
        if peer.barred or not connection.contents.keeps_others_waiting:
            connection.contents.excuse(now_ms)
        if peer.barred or peer.takes_output():
            # Its heartbeats are not heard while it is not read. That is our doing, or it lives.
            connection.received_ms = now_ms
    if connection.has_half_frame and connection.half_frame.is_late(now_ms):
        return f"a frame was not finished within {HALF_FRAME_S} s, nor {PROGRESS_BYTES} bytes of it"
    if connection.contents.is_late(now_ms):
        return (
            f"a message was not finished within {HALF_FRAME_S} s, nor {PROGRESS_BYTES} bytes of it"
        )
    heartbeat_ms = connection.heartbeat_s * 1000
    if heartbeat_ms:
        if now_ms - connection.received_ms > 2 * heartbeat_ms:
            return f"missed heartbeats: nothing came for {2 * connection.heartbeat_s} s"
        if now_ms - connection.sent_ms >= heartbeat_ms // 2:
            connection.write(HEARTBEAT_FRAME)
    return None
