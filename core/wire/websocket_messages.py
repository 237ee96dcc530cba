"""Decodes the WebSocket frames of a client into whole messages of a bounded size."""

from __future__ import annotations

from typing import Final

from .websocket import Ending, Inbound

POLICY, TOO_BIG = 1008, 1009
"""Close codes for too many frames at once, and for a message above the limit (RFC 6455 7.4.1)."""
FRAMES_AT_ONCE: Final = 8_192
"""In one read of up to 256 KiB, some 10 ms of work: frames of 32 bytes, smaller than any command's.
"""


class InboundMessages(Inbound):
    """Takes text and binary messages alike."""

    takes_text = True

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes
        self._message = bytearray()  # A list of pieces would take 40 bytes more for each.
        self._is_begun = False

    @property
    def incomplete_bytes(self) -> int:
        """The size of what came of a message that is not complete."""
        return len(self._message)

    def receive_messages(self, data: bytes) -> list[bytes]:
        """Returns the messages that this read completes; none after `ended` is set."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        found: list[bytes] = []
        at, size, frames = 0, len(data), 0
        while at < size and self.ended is None:
            if not self._left:
                frames += 1
                if frames > FRAMES_AT_ONCE:
                    self.ended = Ending(POLICY, "too many tiny frames at once", by_client=False)
                    break
                end = self._frame(data, at)
                if end < 0:
                    self._rest = data[at:]
                    break
                self._is_begun |= not self.is_control(data[at])
                at = end
            piece = data[at : at + self._left]
            at += len(piece)
            self._add(piece)
            if self._is_begun and not self._left and not self._in_message:
                found.append(bytes(self._message))
                self._message, self._is_begun = bytearray(), False
        return found

    def _add(self, piece: bytes) -> None:
        if len(self._message) + self._left > self._max_bytes:
            self.ended = Ending(
                TOO_BIG, f"a message has more than {self._max_bytes} bytes", by_client=False
            )
        elif piece:
            self._message += self._unmasked(piece)
            self._left -= len(piece)
