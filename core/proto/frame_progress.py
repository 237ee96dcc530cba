"""Times out frames that clients begin and do not finish.

The time counts from the beginning of the frame, and again whenever `PROGRESS_BYTES` more of it
have come. So a publisher whose reads all end within some frame never times out, a slow network
can carry a large frame, and single octets keep nothing open: the longest frame takes at most
frame_max / `PROGRESS_BYTES` times `FRAME_TIMEOUT_S`.
"""

from __future__ import annotations

from typing import Final

FRAME_TIMEOUT_S: Final = 10
"""A frame without `PROGRESS_BYTES` of progress for so long ends the connection."""
PROGRESS_BYTES: Final = 16_384


class FrameProgress:
    """Progress of an incomplete frame; `counted_bytes` of it were there at `since_ms`."""

    __slots__ = ("counted_bytes", "since_ms")

    def __init__(self, now_ms: int) -> None:
        self.since_ms = now_ms
        self.counted_bytes = 0

    def grown(self, size_bytes: int, now_ms: int, *, is_another: bool) -> None:
        """Notes the size received so far; `is_another` if the frame before was finished."""
        if is_another or size_bytes - self.counted_bytes >= PROGRESS_BYTES:
            self.counted_bytes = size_bytes
            self.since_ms = now_ms

    def is_late(self, now_ms: int) -> bool:
        return now_ms - self.since_ms > FRAME_TIMEOUT_S * 1000
