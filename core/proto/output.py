"""The output of a connection: buffered during a turn, written once at its end.

Deliveries and replies are buffered as bytes; confirms are added to them, one `multiple` ack for
each channel, when the store has committed what they wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from ..statistics.counters import TrafficCounters

if TYPE_CHECKING:
    from ..auth import User
    from ..broker import Broker
    from .confirms import Confirms
    from .context import ChannelContext

_WRITE_AHEAD_BYTES: Final = 262_144
"""Output that one connection may buffer in a turn before its consumers have to wait."""


class Transport(Protocol):
    """The socket of a connection, as the connection uses it."""

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


_NO_TRANSPORT: Final = _NoTransport()


class ConnectionOutput:
    """The output of a connection, and the transport that it is written to."""

    __slots__ = (
        "_broker", "_channels", "_confirming", "_consumers_wait", "_ends", "_out",
        "_waits_for_commit", "pending_bytes", "sent_ms", "socket_writable", "traffic",
        "transport", "waiting_reply_bytes",
    )  # fmt: skip

    def __init__(
        self, broker: Broker, transport: Transport, channels: Mapping[int, ChannelContext]
    ) -> None:
        self._broker = broker
        self.transport: Transport = transport
        self._channels = channels
        self.sent_ms = broker.now_ms
        self.traffic = TrafficCounters()
        """The traffic of the connection, sent and received."""
        self.socket_writable = True
        self._out: list[bytes | bytearray] = []
        self.pending_bytes = 0
        """Bytes to be written at the end of the turn."""
        self.waiting_reply_bytes = 0
        """Bytes of replies that wait behind a tx.commit until the disk has it."""
        self._consumers_wait = False
        self._confirming: dict[ChannelContext, None] = {}
        self._waits_for_commit = False
        self._ends = False

    def write(self, data: bytes | bytearray) -> None:
        """Queues bytes for the end of the turn."""
        if not self.pending_bytes and not self._out:
            self._broker.outgoing.append(self)
        self._out.append(data)
        self.pending_bytes += len(data)

    @property
    def writable(self) -> bool:
        """Whether its consumers may get more in this turn."""
        if self.socket_writable and self.pending_bytes < _WRITE_AHEAD_BYTES:
            return True
        self._consumers_wait = True
        return False

    def flush(self) -> None:
        """Writes the buffered output to the transport; called once a turn."""
        if self._confirming:
            self._send_confirms()
        out, self._out = self._out, []
        if out:
            self.sent_ms = self._broker.now_ms
            self.pending_bytes = 0
            data = out[0] if len(out) == 1 else b"".join(out)
            self._broker.statistics.sent(self.traffic, len(data))
            self.transport.write(data)
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
        for channel in self._channels.values():
            channel.reopen_consumers()

    def confirm_later(self, channel: ChannelContext) -> None:
        """Schedules the channel's confirms for the end of the turn."""
        if not self._confirming and not self._out:
            self._broker.outgoing.append(self)
        self._confirming[channel] = None

    def end_confirms(self, channel: ChannelContext) -> None:
        """Sends the confirms of a channel that are due; it gets no others."""
        if channel.confirms is not None:
            frames = self._collect(channel, channel.confirms)
            if frames:
                self.write(frames)
        self._confirming.pop(channel, None)

    def forget_confirms(self) -> None:
        """Drops the confirms that are not written yet."""
        self._confirming.clear()

    def _send_confirms(self) -> None:
        refused = self._broker.store.progress.refused
        confirming, self._confirming = self._confirming, {}
        for channel in confirming:
            confirms = channel.confirms
            if not channel.open or confirms is None:
                continue
            frames = self._collect(channel, confirms, refused)
            if frames:
                self._out.append(frames)
                self.pending_bytes += len(frames)
            if confirms.pending:
                self._confirming[channel] = None
        if self._confirming and not self._waits_for_commit:
            self._waits_for_commit = True
            self._broker.commits.on_next(self._committed)

    def _collect(self, channel: ChannelContext, confirms: Confirms, refused: int = 0) -> bytes:
        """Returns the confirms that are due, and counts them; see `Confirms.collect`."""
        broker, acked = self._broker, confirms.acked
        frames = confirms.collect(channel.number, broker.store.progress.committed, refused)
        if confirms.acked > acked:
            broker.statistics.confirmed(channel.vhost.name, channel, confirms.acked - acked)
        return frames

    def _committed(self) -> None:
        self._waits_for_commit = False
        self._broker.outgoing.append(self)

    def end(self) -> None:
        """Closes the transport after the buffered output is sent."""
        self._ends = True
        if not self._out and not self._confirming:
            self._broker.outgoing.append(self)

    def drop(self) -> None:
        """Discards all output of a lost socket, and lets go of it: a reference cycle would wait
        for the garbage collector."""
        self.transport = _NO_TRANSPORT
        self.socket_writable = False
        self._confirming.clear()
        self._out.clear()
        self._ends = False
