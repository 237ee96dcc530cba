"""The output of a connection: buffered during a turn, written once at its end.

Deliveries and replies are buffered as bytes; confirms are added to them, one `multiple` ack for
each channel, when the store has committed what they wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..auth import User
    from ..broker import Broker
    from .channel import Channel

_WRITE_AHEAD_BYTES = 262_144
"""Output that one connection may buffer in a turn before its consumers have to wait."""


class Transport(Protocol):
    """What a connection needs of its socket."""

    def write(self, data: bytes | bytearray) -> None: ...
    def close(self) -> None:
        """Sends what is buffered, then closes."""

    def authenticate(self, name: str, password: str, answer: Callable[[User | None], None]) -> None:
        """Checks a password off the loop, then calls `answer` on it."""

    def drop_later(self, after_s: float) -> None:
        """Closes the socket after a delay, without a reply."""

    def unblocked(self) -> None:
        """Resumes reading after an alarm or a reply that had to wait."""


class _NoTransport:
    """The transport of a connection whose socket is closed; discards everything."""

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
        self._consumers_wait = False
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
        """Whether its consumers may get more in this turn."""
        if self.socket_writable and self._out_bytes < _WRITE_AHEAD_BYTES:
            return True
        self._consumers_wait = True
        return False

    def flush(self) -> None:
        """Writes the buffered output to the transport; called once a turn."""
        if self._confirming:
            self._send_confirms()
        out, self._out = self._out, []
        if out:
            self.sent_ms = self.broker.now_ms
            self._out_bytes = 0
            self.transport.write(out[0] if len(out) == 1 else b"".join(out))
        if self._consumers_wait and self.socket_writable:
            self._consumers_wait = False
            self._reopen_consumers()
        if self._ends:
            self._ends = False
            self.transport.close()

    def resume_writing(self) -> None:
        """Lets consumers deliver again: the socket's write buffer has drained."""
        self.socket_writable = True
        self._consumers_wait = False
        self._reopen_consumers()

    def _reopen_consumers(self) -> None:
        for channel in self.channels.values():
            channel.reopen_consumers()

    def confirm_later(self, channel: Channel) -> None:
        """Schedules the channel's confirms for the end of the turn."""
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
        """Closes the transport after the buffered output is sent."""
        self._ends = True
        if not self._out and not self._confirming:
            self.broker.outgoing.append(self)

    def drop_output(self) -> None:
        """Discards all output of a lost socket, and lets go of it: a reference cycle would wait
        for the garbage collector."""
        self.transport = _NO_TRANSPORT
        self.socket_writable = False
        self._confirming.clear()
        self._out.clear()
        self._ends = False
