"""Checks every peer twice a second: heartbeats, stuck handshakes, incomplete frames and messages.

Peers that are not read because of an alarm can't time out by their input. Their sockets are polled
instead, for whether the client has disconnected.
"""

from __future__ import annotations

import asyncio
import logging
import select
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ..proto.connection_state import ConnectionState
from ..proto.frame_progress import FRAME_TIMEOUT_S, PROGRESS_BYTES
from ..slices import for_each
from ..wire.frames import HEARTBEAT_FRAME

if TYPE_CHECKING:
    from .listener import Listener
    from .peer import Peer

logger = logging.getLogger(__name__)

HANDSHAKE_S: Final = 10
CLOSE_OK_S: Final = 10
"""Timeout of close-ok, and of closing the socket after our close-ok."""
DISCONNECTED_S: Final = 30
"""An unread peer whose socket is closed at two checks this far apart is aborted."""
_DISCONNECTED_EVENTS: Final = getattr(select, "POLLRDHUP", 0)
"""Linux; elsewhere a connection that was reset is noticed, one that was closed is not."""
_PERIOD_S: Final = 0.5
_STALL_MS: Final = 1_500


async def watch_peers(listener: Listener) -> None:
    """Checks all peers periodically, in one task: timers would wake up for each idle connection."""
    clock = listener.broker.clock
    while True:
        asleep_ms = clock.now_ms()
        await asyncio.sleep(_PERIOD_S)
        if clock.now_ms() - asleep_ms > _STALL_MS:
            # The process was suspended: input that came meanwhile is read before the check.
            continue
        check_peers(listener)


def check_peers(listener: Listener) -> None:
    """Checks every peer once, in slices: aborts it if it timed out, or sends a heartbeat if due."""
    listener.broker.tick()

    def check(peer: Peer) -> None:
        if peer not in listener.peers:
            return
        if reason := _timeout_reason(peer, listener.broker.now_ms):
            logger.warning("connection %s: %s", peer.connection.name, reason)
            peer.abort()
        else:
            _send_heartbeat(peer, listener.broker.now_ms)

    listener.broker.slices.start(for_each(list(listener.peers), check))
    if listener.broker.now_ms - listener.polled_sockets_ms >= DISCONNECTED_S * 1000:
        listener.polled_sockets_ms = listener.broker.now_ms
        _abort_disconnected(listener)
    listener.turn()


def _abort_disconnected(listener: Listener) -> None:
    disconnected = _disconnected(peer for peer in listener.peers if peer.is_blocked)
    for peer in disconnected & listener.disconnected_peers:
        logger.warning(
            "connection %s: disconnected more than %d s ago, while reading was paused",
            peer.connection.name,
            DISCONNECTED_S,
        )
        peer.abort()
    listener.disconnected_peers = disconnected


def _disconnected(peers: Iterable[Peer]) -> set[Peer]:
    """Returns the peers whose client has closed or reset the connection, or is unreachable."""
    poll, by_file = select.poll(), {}
    for peer in peers:
        by_file[peer.fileno] = peer
        poll.register(peer.fileno, _DISCONNECTED_EVENTS)
    return {by_file[file] for file, events in poll.poll(0) if not events & select.POLLNVAL}


def _timeout_reason(peer: Peer, now_ms: int) -> str | None:
    """Returns the reason to abort the peer, None if there is none."""
    connection = peer.connection
    if connection.state is ConnectionState.HANDSHAKE:
        if connection.handshake is not None and connection.handshake.paused:
            # Its password waits to be checked, which is not the client's fault.
            connection.started_ms = now_ms
        if now_ms - connection.started_ms > HANDSHAKE_S * 1000:
            return f"no handshake within {HANDSHAKE_S} s"
        return None
    if connection.state is not ConnectionState.OPEN:
        # A client that neither reads the close nor disconnects would keep its socket forever.
        if now_ms - connection.closing_since_ms > CLOSE_OK_S * 1000:
            return f"close timed out: the socket was not closed within {CLOSE_OK_S} s"
        return None
    if peer.is_paused:
        connection.reader.frame_progress.since_ms = now_ms
        if peer.is_blocked or not connection.contents.blocks_others:
            connection.contents.restart_timeouts(now_ms)
        if peer.is_blocked or peer.takes_output():
            # Its heartbeats are not read now, because of an alarm, or it proves to be alive.
            connection.received_ms = now_ms
    if connection.reader.has_partial_frame and connection.reader.frame_progress.is_late(now_ms):
        return f"frame timed out: less than {PROGRESS_BYTES} bytes received in {FRAME_TIMEOUT_S} s"
    if connection.contents.is_late(now_ms):
        return (
            f"message timed out: less than {PROGRESS_BYTES} bytes received in {FRAME_TIMEOUT_S} s"
        )
    heartbeat_ms = connection.heartbeat_s * 1000
    if heartbeat_ms and now_ms - connection.received_ms > 2 * heartbeat_ms:
        return f"missed heartbeats: nothing came for {2 * connection.heartbeat_s} s"
    return None


def _send_heartbeat(peer: Peer, now_ms: int) -> None:
    """Sends a heartbeat if one is due: nothing was sent for half the interval (AMQP 0-9-1 4.2.7).
    The end of the turn writes it."""
    connection = peer.connection
    heartbeat_ms = connection.heartbeat_s * 1000
    is_open = connection.state is ConnectionState.OPEN
    if is_open and heartbeat_ms and now_ms - connection.output.sent_ms >= heartbeat_ms // 2:
        connection.output.write(HEARTBEAT_FRAME)
