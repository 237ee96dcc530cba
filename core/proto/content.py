"""Assembles published messages from their content frames.

The slow path of publishing: bodies in several frames, or frames cut by the end of a read. A
message is method, header and body frames on one channel with nothing between (AMQP 0-9-1
4.2.6); frames of other channels may come between.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from ..errors import ChannelError, ConnectionFault
from ..resources.partial_content import PartialContent
from ..wire.frames import BASIC, BODY, HEADER
from ..wire.method_ids import BASIC_PUBLISH
from .frame_progress import FrameProgress

if TYPE_CHECKING:
    from .context import ChannelContext
    from .pending_input import PendingInput

MAX_PARTIAL_MESSAGES: Final = 8
"""Messages of the maximum size that the channels of one connection may have incomplete at a time;
clients send one after the other, or interleave a few."""


class Content:
    """An incomplete message: its publish method's payload, then header, then body.

    `part` accounts for its memory.
    """

    __slots__ = (
        "_body", "_missing", "body_bytes", "declared_bytes", "method", "part", "progress",
        "properties",
    )  # fmt: skip

    def __init__(self, method: bytes, part: PartialContent, now_ms: int) -> None:
        self.method = method
        self.part = part
        self.progress = FrameProgress(now_ms)
        self.properties = b""
        """The property flags and list; empty before the header."""
        self.body_bytes = 0
        self.declared_bytes = 0
        """Size of the whole message, set by `Contents.declare`."""
        self._missing = 0
        # Grown in place: a list of a million small frames would take a hundred times the body.
        self._body = bytearray()

    def add(self, kind: int, payload: bytes) -> bool:
        """Adds the next frame; True when the message is complete.

        Raises:
            ConnectionFault: 505 for a frame out of order, 501 for a body longer than declared.
        """
        if not self.properties:
            if kind != HEADER:
                raise ConnectionFault(505, "expected a content header, got a content body")
            self._read_header(payload)
            return not self._missing
        if kind != BODY:
            raise ConnectionFault(505, "expected a content body, got a content header")
        if len(payload) > self._missing:
            raise ConnectionFault(
                501,
                f"content body runs {len(payload) - self._missing} bytes past the "
                f"{self.body_bytes} bytes that its header declares",
            )
        self._missing -= len(payload)
        self._body += payload
        self.part.grow(len(payload))
        return not self._missing

    def _read_header(self, payload: bytes) -> None:
        if len(payload) < 14:
            raise ConnectionFault(502, f"content header of {len(payload)} bytes, minimum 14")
        class_id = int.from_bytes(payload[:2], "big")
        if class_id != BASIC:
            raise ConnectionFault(505, f"content header of class {class_id}, expected {BASIC}")
        self.body_bytes = self._missing = int.from_bytes(payload[4:12], "big")
        self.properties = payload[12:]
        self.part.grow(len(self.properties))

    def has_progressed(self, now_ms: int) -> bool:
        """Whether enough has come since the last call to restart the timeout."""
        before_ms = self.progress.since_ms
        self.progress.grown(len(self._body), now_ms, is_another=False)
        return self.progress.since_ms != before_ms

    def body(self) -> bytes:
        return bytes(self._body)


class Contents(dict["ChannelContext", Content]):
    """The incomplete messages of one connection; the one without progress for longest is first."""

    __slots__ = ("_heard_ms", "_max_bytes", "_pending", "_size_bytes")

    def __init__(self, pending: PendingInput, max_message_bytes: int) -> None:
        super().__init__()
        self._pending = pending
        self._max_bytes = MAX_PARTIAL_MESSAGES * max_message_bytes
        self._heard_ms = 0
        self._size_bytes = 0

    def begin(self, channel: ChannelContext, method: bytes) -> None:
        """Begins to collect the content of a publish that the user may send."""

        def give_up(reason: str) -> None:
            error = ChannelError(311, reason)
            channel.connection.fail_channel(channel.number, error, BASIC_PUBLISH)

        broker = channel.broker
        part = broker.alarms.unfinished.begin(channel.user.name, give_up)
        channel.content = self[channel] = Content(method, part, broker.now_ms)

    def end(self, channel: ChannelContext) -> None:
        """Removes the message of a channel, complete or not, and goes on reading if it waited."""
        content = self.pop(channel, None)
        if content is not None:
            channel.content = None
            self._size_bytes -= content.declared_bytes
            content.part.close()
            self._pending.memory_freed()

    def declare(self, content: Content) -> None:
        """Claims memory for a message whose header has come; reading stops if it has to wait for
        others of the same user.

        Raises:
            ChannelError: 311 if this connection has too much incomplete, or the user has no
                memory left beside other messages of this connection: if it waited, those could
                never be completed.
        """
        size_bytes = content.declared_bytes = content.body_bytes + len(content.properties)
        self._size_bytes += size_bytes
        if len(self) == 1:
            pending = self._pending
            pending.awaits_memory = not content.part.claim(size_bytes, pending.memory_freed)
            return
        if self._size_bytes > self._max_bytes:
            raise ChannelError(
                311,
                f"too many bytes of incomplete messages on this connection: {self._size_bytes} "
                f"(limit {self._max_bytes})",
            )
        if not content.part.claim(size_bytes):
            raise ChannelError(
                311,
                f"the incomplete messages of this user exceed their memory with {size_bytes} "
                "bytes more",
            )

    def grown(self, channel: ChannelContext, now_ms: int) -> None:
        """Notes that more of a body has come."""
        content = self[channel]
        if content.has_progressed(now_ms):
            del self[channel]
            self[channel] = content

    def restart_timeouts(self, now_ms: int) -> None:
        """Restarts the timeouts of a connection that was not read until now."""
        self._heard_ms = now_ms

    @property
    def blocks_others(self) -> bool:
        """Whether connections of the same user wait for the memory that these take."""
        return any(content.part.blocks_others for content in islice(self.values(), 1))

    def is_late(self, now_ms: int) -> bool:
        """Whether one makes too little progress (see `FrameProgress`)."""
        if not self:
            return False
        first = next(iter(self.values())).progress
        first.since_ms = max(first.since_ms, self._heard_ms)
        return first.is_late(now_ms)


def expect_no_content(channel: ChannelContext) -> None:
    """Raises `ConnectionFault` 505 if a message of the channel is incomplete (AMQP 0-9-1 4.2.6)."""
    if channel.content is not None:
        raise ConnectionFault(505, "expected a content frame, got a method")
