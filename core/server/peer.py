"""The asyncio protocol of one AMQP client: reads, writes, and back-pressure both ways.

A peer is read once a turn. libuv would read a socket up to 32 times before the next one, 8 MB of
one publisher's messages, so a peer that filled a read is paused for one iteration of the event
loop.
"""

from __future__ import annotations

import asyncio
import logging
import socket as socket_module
from collections.abc import Callable
from enum import Enum, auto
from socket import IPPROTO_TCP, SO_KEEPALIVE, SOL_SOCKET, TCP_NODELAY
from socket import socket as Socket
from typing import TYPE_CHECKING, Final, cast

from ..auth import User
from ..errors import ConnectionFault
from ..proto.connection import Connection, TlsFacts
from ..proto.connection_state import ConnectionState
from ..wire.proxy import Relayed
from .caller import caller_of

if TYPE_CHECKING:
    from .listener import Listener

logger = logging.getLogger(__name__)

HIGH_WATER_BYTES: Final = 524_288
"""Unsent bytes above which a client gets no more deliveries until it has caught up."""
FULL_READ_BYTES: Final = 131_072
"""A read this large means that more is waiting."""
DISCARDED_MAX_BYTES: Final = 67_108_864
"""Bytes that a client may send after the connection was closed before its socket is reset."""
QUIET_S: Final = 0.5
"""TLS has no half-close: the socket is closed when nothing has come for so long."""

_KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
"""In seconds, seconds and probes; not every system has all three."""


class PauseReason(Enum):
    """A reason not to read a peer at the moment."""

    TURN = auto()
    WRITE = auto()
    LOGIN = auto()
    ALARM = auto()
    """An alarm for memory or disk stops its publish; or a reply waits for the disk."""
    DISK = auto()
    """Too many bytes wait for the disk, and it publishes persistent messages."""


_BLOCKING: Final = frozenset((PauseReason.ALARM, PauseReason.DISK))


class Peer(asyncio.Protocol):
    """One client of a listener; `relayed` is the header of its proxy, if any."""

    def __init__(self, listener: Listener, relayed: Relayed | None = None) -> None:
        self._listener = listener
        self._relayed = relayed
        self._transport: asyncio.Transport
        self._pauses: set[PauseReason] = set()
        self._waiting_bytes = 0
        self._discarded_bytes = 0
        self.connection: Connection

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
        self._prepare(transport.get_extra_info("socket"))
        caller = caller_of(transport, self._relayed, self._listener.certificate_name)
        self._listener.broker.tick()
        self.connection = Connection(
            self._listener.broker,
            self,
            name=caller.name,
            address=caller.address,
            peer_is_loopback=caller.loopback,
            certified=caller.certified,
            takes_passwords=caller.private or self._listener.takes_plaintext,
            tls=_tls_facts(transport),
        )
        self._listener.peers.add(self)

    def _prepare(self, socket: Socket) -> None:
        socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        # Heartbeats are not seen while it is not read; TCP keepalive still checks the client.
        socket.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            if hasattr(socket_module, name):
                socket.setsockopt(IPPROTO_TCP, getattr(socket_module, name), value)
        self.fileno = socket.fileno()

    def data_received(self, data: bytes) -> None:
        if self.connection.state is ConnectionState.CLOSED:
            self._discard(data)
            return
        listener = self._listener
        broker = listener.broker
        broker.tick()
        broker.disk_behind = broker.consumers_behind = False
        try:
            self.connection.receive(data)
        except Exception:
            self._fail_unexpected()
        self._pause_publisher()
        if broker.consumers_behind:
            self._yield_reading(turns=2)
        elif len(data) >= FULL_READ_BYTES or self.connection.pending.unfinished:
            self._yield_reading(turns=1)
        listener.turn()

    def _discard(self, data: bytes) -> None:
        self._discarded_bytes += len(data)
        if self._discarded_bytes > DISCARDED_MAX_BYTES:
            self.abort()
        elif len(data) >= FULL_READ_BYTES:
            self._yield_reading(turns=1)

    def _fail_unexpected(self) -> None:
        logger.exception("connection %s: internal error", self.connection.name)
        self.connection.fail(ConnectionFault(541, "internal error, see the broker's log"))

    def resume_reading(self) -> None:
        """Goes on after a pause: with the rest of the last read, then with the socket."""
        self._pauses.discard(PauseReason.TURN)
        if self.connection.pending.unfinished and PauseReason.DISK not in self._pauses:
            self.data_received(b"")
        self._read_if_free()

    def pause_writing(self) -> None:
        """Stops deliveries; acks and heartbeats, which need no reply, are still read."""
        self.connection.output.socket_writable = False

    def resume_writing(self) -> None:
        self._listener.broker.tick()
        self.connection.output.resume_writing()
        self._resume(PauseReason.WRITE)
        self._listener.turn()

    def yield_reading(self) -> None:
        """Pauses reading for one iteration of the event loop."""
        self._yield_reading(turns=1)

    def _yield_reading(self, turns: int) -> None:
        """Pauses reading for one or two turns, or until the client reads its replies."""
        if self.connection.pending.unfinished and not self.connection.output.socket_writable:
            self._pause(PauseReason.WRITE)
        elif PauseReason.TURN not in self._pauses:
            self._pause(PauseReason.TURN)
            self._listener.resume_reading_later(self, turns=turns)

    def _pause_publisher(self) -> None:
        """Pauses reading if its publishes have to wait for an alarm or the disk."""
        if self.connection.pending.is_stopped:
            self._pause(PauseReason.ALARM)
        if self._listener.broker.disk_behind and PauseReason.DISK not in self._pauses:
            self._pause(PauseReason.DISK)
            self._listener.write_backpressure.wait(self._disk_caught_up)

    def unblocked(self) -> None:
        self._read_later(PauseReason.ALARM)

    def _disk_caught_up(self) -> None:
        self._read_later(PauseReason.DISK)

    def _read_later(self, reason: PauseReason) -> None:
        """Resumes reading in the next turn: many peers may resume at the same time."""
        self._yield_reading(turns=1)
        self._pauses.discard(reason)

    def _pause(self, reason: PauseReason) -> None:
        if not self._pauses:
            self._transport.pause_reading()
        self._pauses.add(reason)

    def _resume(self, reason: PauseReason) -> None:
        self._pauses.discard(reason)
        if self.connection.pending.unfinished:
            self._yield_reading(turns=1)
        self._read_if_free()

    def _read_if_free(self) -> None:
        if not self._pauses and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.peers.discard(self)
        self._listener.broker.tick()
        self.connection.lost()
        self._listener.turn()

    def takes_output(self) -> bool:
        """Whether the client has read anything since the last call."""
        waiting, before = self._transport.get_write_buffer_size(), self._waiting_bytes
        self._waiting_bytes = waiting
        return waiting < before

    @property
    def is_paused(self) -> bool:
        """Whether reading is paused, so that missing input is not the client's fault."""
        return bool(self._pauses)

    @property
    def is_blocked(self) -> bool:
        """Whether reading is paused by an alarm or the disk, for an unbounded time."""
        return not _BLOCKING.isdisjoint(self._pauses)

    @property
    def buffered_bytes(self) -> int:
        """Bytes that the socket has not sent yet."""
        return self._transport.get_write_buffer_size()

    @property
    def is_awaited(self) -> bool:
        """Whether a server that stops waits for it: for close-ok, or to send its output."""
        return not self.connection.is_closed or self.buffered_bytes > 0

    def abort(self) -> None:
        """Closes the socket without sending what is buffered."""
        self._transport.abort()

    # -- the connection's side

    def write(self, data: bytes | bytearray) -> None:
        self._transport.write(data)

    def close(self) -> None:
        """Closes the sending side, and waits for the client to close.

        Clients may send more behind connection.close. A socket closed with unread input is reset,
        and the reset may overtake our close-ok.
        """
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._close_when_quiet(-1)

    def _close_when_quiet(self, discarded_bytes: int) -> None:
        if self._discarded_bytes == discarded_bytes:
            self._transport.close()
        else:
            loop = asyncio.get_running_loop()
            loop.call_later(QUIET_S, self._close_when_quiet, self._discarded_bytes)

    def authenticate(self, name: str, password: str, answer: Callable[[User | None], None]) -> None:
        """Checks a password; reading is paused, so that nobody fills the memory before login."""
        self._pause(PauseReason.LOGIN)

        def answered(user: User | None) -> None:
            try:
                answer(user)
            except Exception:
                self._fail_unexpected()
            self._pause_publisher()
            handshake = self.connection.handshake
            if handshake is None or not handshake.paused:
                self._resume(PauseReason.LOGIN)

        self._listener.authenticate(self.connection, name, password, answered)

    def drop_later(self, after_s: float) -> None:
        """Aborts after a delay; reading is paused, because input would be buffered."""
        self._pause(PauseReason.LOGIN)
        asyncio.get_running_loop().call_later(after_s, self.abort)


def _tls_facts(transport: asyncio.BaseTransport) -> TlsFacts | None:
    session = transport.get_extra_info("ssl_object")
    if session is None:
        return None
    cipher = session.cipher()
    return TlsFacts(session.version() or "", cipher[0] if cipher else "")
