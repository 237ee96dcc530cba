"""Reads the frames of a connection: publishes and acks in bulk where possible, others one by one.

Publishes and acks are recognised in the bytes (the fast path). Without `fast` every frame is
decoded by itself (the slow path); both paths give the same answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..busy_names import NameBusy
from ..errors import ConnectionFault
from ..wire.frames import (
    ACK_FRAME_BYTES,
    BODY,
    END,
    FRAME_OVERHEAD_BYTES,
    HEAD_BYTES,
    HEADER,
    HEARTBEAT,
    METHOD,
    PUBLISH,
    method_frame,
)
from ..wire.method_ids import CONNECTION_CLOSE_OK, NO_METHOD
from .acks import is_ack, receive_acks
from .connection_state import ConnectionState
from .dispatch import receive_frame
from .frame_progress import FrameProgress
from .pending_input import READ_MS

if TYPE_CHECKING:
    from ..broker import Broker
    from .connection import Connection
    from .output import ConnectionOutput
    from .pending_input import PendingInput
    from .publish_scanner import PublishScanner

_CLOSE_OK_FRAME: Final = method_frame(0, CONNECTION_CLOSE_OK)
_KINDS: Final = frozenset((METHOD, HEADER, BODY, HEARTBEAT))
_JOINED_BYTES: Final = 4_096


class FrameReader:
    """The frame reader of one connection."""

    __slots__ = (
        "_broker", "_fast", "_frame_end", "_output", "_pending", "_scanner", "frame_progress",
        "has_partial_frame", "lost_frames",
    )  # fmt: skip

    def __init__(
        self,
        broker: Broker,
        pending: PendingInput,
        output: ConnectionOutput,
        scanner: PublishScanner,
        *,
        fast: bool,
    ) -> None:
        self._broker = broker
        self._pending = pending
        self._output = output
        self._scanner = scanner
        self._fast = fast
        self.has_partial_frame = False
        self.frame_progress = FrameProgress(broker.now_ms)
        self.lost_frames = False
        """Frame boundaries are lost: only close-ok is looked for, at the end of the stream."""
        self._frame_end = 0
        """The end of the current frame, where parsing goes on after an error; 0 if unknown."""

    def read(self, connection: Connection, data: bytes) -> None:
        """Handles the whole frames in the rest of the last read and `data`."""
        pending = self._pending
        start = 0
        size = len(pending.tail) + len(data)
        if pending.tail:
            data, start = self._join(connection, pending.tail, data)
        if self.lost_frames:
            self._await_close_ok(connection, data)
            return
        try:
            at = self._consume(connection, data, start)
            self._scanner.flush()
            connection.current_method = NO_METHOD
        except ConnectionFault as error:
            self._failed(connection, error, data)
            return
        if connection.state is ConnectionState.CLOSED:
            return
        left = len(data) - at
        if left:
            is_another = not self.has_partial_frame or left < size
            self.frame_progress.grown(left, self._broker.now_ms, is_another=is_another)
            pending.tail = data[at:]
        self.has_partial_frame = left > 0
        pending.unfinished = left > 0 and not pending.is_stopped and pending.must_yield

    def _join(self, connection: Connection, tail: bytes, data: bytes) -> tuple[bytes, int]:
        """Prepends the rest of the last read; returns the bytes to parse and the offset to start.

        Copying a large read to complete one message costs more than everything else (half of the
        broker's time when batches stay in memory), so the message is completed with the first
        few kilobytes of the read if that is enough.
        """
        self._pending.tail = b""
        if len(data) > 4 * _JOINED_BYTES and connection.state is ConnectionState.OPEN:
            joined = tail + data[:_JOINED_BYTES]
            try:
                at = self._consume(connection, joined, 0)
            except ConnectionFault as error:
                self._failed(connection, error, joined)
                return self._join(connection, self._pending.tail, data[_JOINED_BYTES:])
            if at >= len(tail):
                return data, at - len(tail)
            tail = joined[at : len(tail)]
        return tail + data, 0

    def _failed(self, connection: Connection, error: ConnectionFault, data: bytes) -> None:
        """Publishes what came before the error and closes; later bytes are only searched for
        close and close-ok."""
        frame_end = self._frame_end
        self._scanner.flush()
        connection.fail(error)
        if error.code == 501 or frame_end == 0:
            self.lost_frames = True
            self._await_close_ok(connection, data)
        else:
            connection.receive(data[frame_end:])

    def _await_close_ok(self, connection: Connection, data: bytes) -> None:
        if data.endswith(_CLOSE_OK_FRAME):
            connection.finish()
        else:
            self._pending.tail = data[-len(_CLOSE_OK_FRAME) :]

    def _consume(self, connection: Connection, data: bytes, at: int) -> int:
        """Handles all whole frames from `at` on; returns the offset of the rest."""
        size = len(data)
        pending = self._pending
        alarmed = self._broker.alarms.any
        if connection.handshake is not None and connection.handshake.expects_header:
            at = connection.handshake.receive_header(data)
            if at == 0:
                return 0
        while connection.state is not ConnectionState.CLOSED:
            if pending.awaits_reply or pending.awaits_memory:
                return at
            if connection.handshake is not None:
                if connection.handshake.paused:
                    connection.handshake.check_buffered(size - at)
                    return at
            elif self._fast and connection.state is ConnectionState.OPEN:
                if not connection.contents and not alarmed:
                    self._frame_end = 0
                    at = self._scanner.scan(data, at, size, connection.frame_max)
                    if at < 0:
                        return ~at
                if size - at < HEAD_BYTES:
                    return at
                if is_ack(data, at, size):
                    self._frame_end = at + ACK_FRAME_BYTES
                    at = receive_acks(connection, data, at, size)
                    if self._broker.clock.now_ms() - self._broker.now_ms >= READ_MS:
                        return at
                    continue
            end = self._check_frame(connection, data, at, size)
            if not end:
                return at
            if alarmed and _publishes(connection, data, at):
                self._scanner.flush()
                pending.block(connection.name, connection.channels.unacked_count())
                return at
            if data[at] != HEARTBEAT and pending.must_yield:
                return at
            self._scanner.flush()
            try:
                number = data[at + 1] << 8 | data[at + 2]
                receive_frame(connection, data[at], number, data[at + 7 : end - 1])
            except NameBusy as busy:
                pending.wait_until(busy.wait)  # and take the same frame again
                return at
            at = end
        return size

    def _check_frame(self, connection: Connection, data: bytes, at: int, size: int) -> int:
        """Returns the end of the frame at `at`, 0 while it is incomplete.

        Raises `ConnectionFault` 501 for a frame that is not valid.
        """
        if size - at < HEAD_BYTES:
            return 0
        connection.current_method = NO_METHOD
        if data[at] not in _KINDS:
            raise ConnectionFault(501, f"unknown frame type {data[at]}")
        length = int.from_bytes(data[at + 3 : at + 7], "big")
        if length > connection.frame_max:
            raise ConnectionFault(
                501, f"frame of {length} bytes is larger than frame_max {connection.frame_max}"
            )
        end = at + FRAME_OVERHEAD_BYTES + length
        if end > size:
            return 0
        self._frame_end = end
        if data[end - 1] != END:
            raise ConnectionFault(501, f"frame ends with octet {data[end - 1]}, not {END}")
        return end


def _publishes(connection: Connection, data: bytes, at: int) -> bool:
    """Whether a frame begins or continues a published message."""
    if connection.state is not ConnectionState.OPEN:
        return False
    if data[at] == METHOD:
        return data[at + 7 : at + 11] == PUBLISH
    return data[at] != HEARTBEAT and bool(connection.contents)
