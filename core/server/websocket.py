"""AMQP over WebSocket: connects an upgraded socket to an ordinary `Peer`.

It is the protocol of the socket and the transport of the peer, so back-pressure, alarms,
heartbeats and limits are those of every peer. Pings are answered, and never queue up.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

from ..wire.proxy import Relayed
from ..wire.websocket import NORMAL, PONG, Ending, Inbound, close_frame, frame, messages
from .peer import FULL_READ_BYTES, HIGH_WATER_BYTES, Peer

if TYPE_CHECKING:
    from .listener import Listener

logger = logging.getLogger(__name__)


class WebSocket(asyncio.Transport, asyncio.Protocol):
    """One WebSocket connection after the upgrade; `relayed` as for a `Peer`."""

    def __init__(self, listener: Listener, relayed: Relayed | None = None) -> None:
        super().__init__()
        self._listener = listener
        self._peer = Peer(listener, relayed)
        self._inbound = Inbound()
        self._socket: asyncio.Transport
        self._closing = False
        self._input_ended = False
        """Input is ignored: the client has sent close, or broken the protocol."""

    # -- the socket's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)
        self._peer.connection_made(self)

    def data_received(self, data: bytes) -> None:
        if self._input_ended:
            return
        inbound = self._inbound
        payload = inbound.receive(data)
        if payload:
            self._peer.data_received(payload)
        if inbound.ping is not None:
            self._answer_ping(inbound.ping)
            inbound.ping = None
        if inbound.ended is not None:
            self._input_ended = True
            self._end_when_taken(inbound.ended)
        elif inbound.unfinished or len(data) >= FULL_READ_BYTES:
            self._peer.yield_reading()

    def _answer_ping(self, ping: bytes) -> None:
        """Sends a pong, only for the last of many pings, and none to a client that does not read
        (RFC 6455 5.5.3)."""
        if not self._closing and self._socket.get_write_buffer_size() < HIGH_WATER_BYTES:
            self._socket.write(frame(PONG, ping))

    def _end_when_taken(self, ending: Ending) -> None:
        """Ends the connection when all input before the close is handled, as with a TCP socket."""
        connection = self._peer.connection
        if self._closing or not (connection.pending.unfinished or connection.pending.is_stopped):
            self._end(ending)

    def _end(self, ending: Ending) -> None:
        """Abandons the AMQP connection; `write_eof` follows at the end of the turn."""
        if self._closing:
            self._socket.close()  # the reply to our close frame
            return
        if not ending.by_client:
            logger.warning("connection %s: %s", self._peer.connection.name, ending.reason)
        self._listener.broker.tick()
        self._peer.connection.abandon()
        self._listener.turn()
        if not self._closing:
            self.write_eof()

    def pause_writing(self) -> None:
        self._peer.pause_writing()

    def resume_writing(self) -> None:
        self._peer.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._peer.connection_lost(exc)

    # -- the peer's side

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._socket.get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._socket.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._socket.get_write_buffer_size()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Writes AMQP frames, a message each."""
        self._socket.write(messages(bytes(data)))

    def pause_reading(self) -> None:
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        """Goes on with the rest of the last read, then with the socket."""
        ended = self._inbound.ended
        if self._inbound.unfinished:
            self.data_received(b"")
        elif ended is not None and not self._closing:
            self._end_when_taken(ended)
        if self._may_read():
            self._socket.resume_reading()

    def _may_read(self) -> bool:
        return not (self._inbound.unfinished or self._peer.is_paused or self.is_closing())

    def is_closing(self) -> bool:
        return self._socket.is_closing()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """Sends a close frame; the socket closes when the client replies, or by the watchdog."""
        if self._closing:
            return
        self._closing = True
        ended = self._inbound.ended
        if ended is None:
            self._socket.write(close_frame(NORMAL))
            self._socket.resume_reading()
            return
        self._socket.write(close_frame(ended.code, ended.reason))
        self._socket.close()

    def abort(self) -> None:
        self._socket.abort()
