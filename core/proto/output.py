"""What a connection sends: gathered over a turn, written once.

Deliveries and answers are queued as bytes; confirms go out with them, collapsed per channel, as
soon as the store has committed what they wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..auth import User
    from ..broker import Broker
    from .channel import Channel

_WRITE_AHEAD_BYTES = 262_144
"""What one connection is given in one turn."""


class Transport(Protocol):
    """The socket's side."""

    def write(self, data: bytes | bytearray) -> None: ...
    def close(self) -> None:
        """Sends what is buffered, then ends."""

    def authenticate(self, name: str, password: str, answer: Callable[[User | None], None]) -> None:
        """Checks a password off the loop, then calls `answer` on it."""

    def drop_later(self, after_s: float) -> None:
        """Ends the connection without a word after a while."""

    def unblocked(self) -> None:
        """What was not read because of an alarm or a get that waited is read again."""


class _NoTransport:
    """Stands for a socket that is gone."""

    def write(self, data: bytes | bytearray) -> None: ...
    def close(self) -> None: ...
    def authenticate(
        self, name: str, password: str, answer: Callable[[User | None], None]
    ) -> None: ...
    def drop_later(self, after_s: float) -> None: ...
    def unblocked(self) -> None: ...


_NO_TRANSPORT = _NoTransport()


class Output:
    """The sending half of a connection."""

    def __init__(self, broker: Broker, transport: Transport) -> None:
        self.broker = broker
        self.transport: Transport = transport
        self.channels: dict[int, Channel] = {}
        self.sent_ms = broker.now_ms
        self.socket_writable = True
        self._out: list[bytes | bytearray] = []
        self._out_bytes = 0
        self._held_back = False
        self._confirming: dict[Channel, None] = {}
        self._waits_for_commit = False
        self._ends = False

    def write(self, data: bytes | bytearray) -> None:
        """Queues bytes for the end of the turn."""
        if not self._out_bytes and not self._out:
            self.broker.outgoing.append(self)
        self._out.append(data)
        self._out_bytes += len(data)

    @property
    def writable(self) -> bool:
        """Whether its consumers may be given more in this turn."""
        if self.socket_writable and self._out_bytes < _WRITE_AHEAD_BYTES:
            return True
        self._held_back = True
        return False

    def flush(self) -> None:
        """Hands everything queued to the transport; called once a turn."""
        if self._confirming:
            self._send_confirms()
        out, self._out = self._out, []
        if out:
            self.sent_ms = self.broker.now_ms
            self._out_bytes = 0
            self.transport.write(out[0] if len(out) == 1 else b"".join(out))
        if self._held_back and self.socket_writable:
            self._held_back = False
            self._reopen_consumers()
        if self._ends:
            self._ends = False
            self.transport.close()

    def resume_writing(self) -> None:
        """The socket takes more again."""
        self.socket_writable = True
        self._held_back = False
        self._reopen_consumers()

    def _reopen_consumers(self) -> None:
        for channel in self.channels.values():
            channel.reopen_consumers()

    def confirm_later(self, channel: Channel) -> None:
        """Confirms of the turn go out together, at its end."""
        if not self._confirming and not self._out:
            self.broker.outgoing.append(self)
        self._confirming[channel] = None

    def _send_confirms(self) -> None:
        store = self.broker.store
        confirming, self._confirming = self._confirming, {}
        for channel in confirming:
            confirms = channel.confirms
            if not channel.open or confirms is None:
                continue
            frames = confirms.collect(channel.number, store.committed, store.refused)
            if frames:
                self._out.append(frames)
                self._out_bytes += len(frames)
            if confirms.waiting:
                self._confirming[channel] = None
        if self._confirming and not self._waits_for_commit:
            self._waits_for_commit = True
            self.broker.on_commit(self._committed)

    def _committed(self) -> None:
        self._waits_for_commit = False
        self.broker.outgoing.append(self)

    def end_output(self) -> None:
        """What is queued is still sent, then the transport is closed."""
        self._ends = True
        if not self._out and not self._confirming:
            self.broker.outgoing.append(self)

    def drop_output(self) -> None:
        """The socket is gone: nothing will be sent any more. It knows this connection, and a cycle
        would wait for the garbage collector."""
        self.transport = _NO_TRANSPORT
        self.socket_writable = False
        self._confirming.clear()
        self._out.clear()
        self._ends = False
