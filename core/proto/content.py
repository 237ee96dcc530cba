"""Assembles published messages from their content frames.

The slow path of publishing: bodies in several frames, or frames cut by the end of a read. A
message is method, header and body frames on one channel with nothing between (AMQP 0-9-1
4.2.6); frames of other channels may come between.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from ..errors import ChannelError, ConnectionFault
from ..resources.partial_content import PartialContent
from ..wire.frames import BASIC, BODY, HEADER
from .frame_progress import FrameProgress

if TYPE_CHECKING:
    from .channel import Channel

MAX_PARTIAL_MESSAGES = 8
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
        self.properties: bytes | None = None
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
        if self.properties is None:
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
            raise ConnectionFault(502, f"content header of {len(payload)} bytes: 14 at least")
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


class Contents(dict["Channel", Content]):
    """The incomplete messages of one connection; the one without progress for longest is first."""

    __slots__ = ("_heard_ms", "_size_bytes")

    def __init__(self) -> None:
        super().__init__()
        self._heard_ms = 0
        self._size_bytes = 0

    def end(self, channel: Channel) -> None:
        content = self.pop(channel)
        self._size_bytes -= content.declared_bytes
        content.part.close()

    def declare(self, content: Content, max_bytes: int, go_on: Callable[[], None]) -> bool:
        """Claims memory for a message whose header has come; False if it has to wait for others
        of the same user, and `go_on` will be called.

        Raises:
            ChannelError: 311 if this connection has too much incomplete, or the user has no
                memory left beside other messages of this connection: if it waited, those could
                never be completed.
        """
        assert content.properties is not None
        size_bytes = content.declared_bytes = content.body_bytes + len(content.properties)
        self._size_bytes += size_bytes
        if len(self) == 1:
            return content.part.claim(size_bytes, go_on)
        if self._size_bytes > max_bytes:
            raise ChannelError(
                311,
                f"{self._size_bytes} bytes of unfinished messages on one connection, "
                f"the limit is {max_bytes}",
            )
        if not content.part.claim(size_bytes):
            raise ChannelError(
                311, f"no room for {size_bytes} bytes beside the user's other unfinished messages"
            )
        return True

    def grown(self, channel: Channel, now_ms: int) -> None:
        """Notes that more of a body has come."""
        content = self[channel]
        if content.has_progressed(now_ms):
            del self[channel]
            self[channel] = content

    def excuse(self, now_ms: int) -> None:
        """Restarts the timeouts of a connection that was not read until now."""
        self._heard_ms = now_ms

    @property
    def keeps_others_waiting(self) -> bool:
        """Whether connections of the same user wait for the memory that these take."""
        return any(content.part.keeps_others_waiting for content in islice(self.values(), 1))

    def is_late(self, now_ms: int) -> bool:
        """Whether one makes too little progress (see `FrameProgress`)."""
        if not self:
            return False
        first = next(iter(self.values())).progress
        first.since_ms = max(first.since_ms, self._heard_ms)
        return first.is_late(now_ms)
