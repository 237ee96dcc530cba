"""Content that does not come whole in one read, put together frame by frame.

The cold path of publishing: bodies in several frames, or frames cut by the end of a read. A
message is method, header and body frames on one channel with nothing between (AMQP 0-9-1
4.2.6); frames of other channels may come between.
"""

from __future__ import annotations

from ..errors import ConnectionFault
from ..wire.frames import BASIC, BODY, HEADER


class Content:
    """One message under way: its publish method's payload, then header, then body."""

    __slots__ = ("_body", "_missing", "body_bytes", "method", "properties")

    def __init__(self, method: bytes) -> None:
        self.method = method
        self.properties: bytes | None = None
        self.body_bytes = 0
        self._missing = 0
        # Grown in place: a list of a million small pieces would weigh a hundred times the body.
        self._body = bytearray()

    def add(self, kind: int, payload: bytes) -> bool:
        """Takes the next frame; True when the message is complete.

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
        return not self._missing

    def _read_header(self, payload: bytes) -> None:
        if len(payload) < 14:
            raise ConnectionFault(502, f"content header of {len(payload)} bytes: 14 at least")
        class_id = int.from_bytes(payload[:2], "big")
        if class_id != BASIC:
            raise ConnectionFault(505, f"content header of class {class_id}, expected {BASIC}")
        self.body_bytes = self._missing = int.from_bytes(payload[4:12], "big")
        self.properties = payload[12:]

    @property
    def buffered_bytes(self) -> int:
        """What has come of the body."""
        return len(self._body)

    def body(self) -> bytes:
        return bytes(self._body)
