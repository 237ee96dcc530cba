"""Checks every peer twice a second: heartbeats, stuck handshakes, incomplete frames and messages.

Peers that are not read because of an alarm can't time out by their input. Their sockets are polled
instead, for whether the client has disconnected.
"""

from __future__ import annotations

import asyncio
import logging
import select
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..proto.connection import State
from ..proto.frame_progress import FRAME_TIMEOUT_S, PROGRESS_BYTES
from ..slices import for_each
from ..wire.frames import HEARTBEAT_FRAME

if TYPE_CHECKING:
    from .listener import Listener
    from .peer import Peer

logger = logging.getLogger(__name__)

HANDSHAKE_S = 10
CLOSE_OK_S = 10
"""Timeout of close-ok, and of closing the socket after our close-ok."""
DISCONNECTED_S = 30
"""An unread peer whose socket is closed at two checks this far apart is aborted."""
_DISCONNECTED_EVENTS = getattr(select, "POLLRDHUP", 0)
"""Linux; elsewhere a connection that was reset is noticed, one that was closed is not."""
_PERIOD_S = 0.5
_STALL_MS = 1_500


async def watch_peers(listener: Listener) -> None:
    """Checks all peers periodically, in one task: timers would wake up for each idle connection."""
    clock = listener.broker.clock
    while True:
        asleep_ms = clock.now_ms()
        await asyncio.sleep(_PERIOD_S)
        if clock.now_ms() - asleep_ms > _STALL_MS:
            # The process was suspended: input that came meanwhile is read before the check.
            continue
        look_after(listener)


def look_after(listener: Listener) -> None:
    """Checks every peer once, in slices; turns then send the heartbeats that are due."""
    listener.broker.tick()

    def look(peer: Peer) -> None:
        reason = _overdue(peer, listener.broker.now_ms) if peer in listener.peers else None
        if reason:
            logger.warning("connection %s: %s", peer.connection.name, reason)
            peer.abort()

    listener.broker.slices.start(for_each(list(listener.peers), look))
    if listener.broker.now_ms - listener.polled_sockets_ms >= DISCONNECTED_S * 1000:
        listener.polled_sockets_ms = listener.broker.now_ms
        _abort_disconnected(listener)
    listener.turn()


def _abort_disconnected(listener: Listener) -> None:
    gone = _disconnected(peer for peer in listener.peers if peer.is_blocked)
    for peer in gone & listener.disconnected_peers:
        logger.warning(
            "connection %s: disconnected more than %d s ago, while reading was paused",
            peer.connection.name,
            DISCONNECTED_S,
        )
        peer.abort()
    listener.disconnected_peers = gone


def _disconnected(peers: Iterable[Peer]) -> set[Peer]:
    """Returns the peers whose client has closed or reset the connection, or is unreachable."""
    poll, by_file = select.poll(), {}
    for peer in peers:
        by_file[peer.fileno] = peer
        poll.register(peer.fileno, _DISCONNECTED_EVENTS)
    return {by_file[file] for file, events in poll.poll(0) if not events & select.POLLNVAL}


def _overdue(peer: Peer, now_ms: int) -> str | None:
    """Returns the reason to abort the peer; sends a heartbeat if due (AMQP 0-9-1 4.2.7)."""
    connection = peer.connection
    if connection.state is State.HANDSHAKE:
        if connection.handshake is not None and connection.handshake.paused:
            # Its password waits to be checked, which is not the client's fault.
            connection.started_ms = now_ms
        if now_ms - connection.started_ms > HANDSHAKE_S * 1000:
            return f"no handshake within {HANDSHAKE_S} s"
        return None
    if connection.state is not State.OPEN:
        # A client that neither reads the close nor disconnects would keep its socket forever.
        if now_ms - connection.closing_since_ms > CLOSE_OK_S * 1000:
            return f"close timed out: the socket was not closed within {CLOSE_OK_S} s"
        return None
    if peer.is_paused:
        connection.frame_progress.since_ms = now_ms
        if peer.is_blocked or not connection.contents.keeps_others_waiting:
            connection.contents.excuse(now_ms)
        if peer.is_blocked or peer.takes_output():
            # Its heartbeats are not read now, because of an alarm, or it proves to be alive.
            connection.received_ms = now_ms
    if connection.has_partial_frame and connection.frame_progress.is_late(now_ms):
        return (
            f"a frame was not finished within {FRAME_TIMEOUT_S} s, nor {PROGRESS_BYTES} bytes of it"
        )
    if connection.contents.is_late(now_ms):
        return (
            f"a message was not finished within {FRAME_TIMEOUT_S} s, "
            f"nor {PROGRESS_BYTES} bytes of it"
        )
    heartbeat_ms = connection.heartbeat_s * 1000
    if heartbeat_ms:
        if now_ms - connection.received_ms > 2 * heartbeat_ms:
            return f"missed heartbeats: nothing came for {2 * connection.heartbeat_s} s"
        if now_ms - connection.sent_ms >= heartbeat_ms // 2:
            connection.write(HEARTBEAT_FRAME)
    return None
