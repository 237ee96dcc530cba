"""Ends connections whose clients do not read: what they were sent is in memory as long."""

from __future__ import annotations

import asyncio
from typing import Final

UNREAD_S: Final = 30.0
MIN_READ_BYTES: Final = 30 * 1024
"""A client has to read as much within that time, as fast as it has to send a body."""


class UnreadTimer:
    """Aborts a connection with unsent bytes unless its client goes on reading.

    A protocol starts it in `pause_writing`, calls `resume` in `resume_writing`, closes its
    connection by `close`, and stops it in `connection_lost`.
    """

    __slots__ = ("_timer", "_unsent_bytes")

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._unsent_bytes = 0

    def start(self, transport: asyncio.WriteTransport) -> None:
        self.stop()
        self._unsent_bytes = transport.get_write_buffer_size()
        self._timer = asyncio.get_running_loop().call_later(UNREAD_S, self._check, transport)

    def resume(self, transport: asyncio.WriteTransport) -> None:
        """Stops, unless the connection is closing: it ends when the rest is read, too."""
        if not transport.is_closing():
            self.stop()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self, transport: asyncio.WriteTransport) -> None:
        """Closes the connection when its client has read what it was sent, or reads no more."""
        transport.close()
        if transport.get_write_buffer_size():
            self.start(transport)

    def _check(self, transport: asyncio.WriteTransport) -> None:
        unsent_bytes = transport.get_write_buffer_size()
        if unsent_bytes > max(0, self._unsent_bytes - MIN_READ_BYTES):
            transport.abort()
        elif unsent_bytes:
            self.start(transport)
