"""The connection of a live reader behind the head of its answer: chunks in one direction."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from ..http.dead_peers import end_without_acknowledgement
from ..http.unread import UnreadTimer

if TYPE_CHECKING:
    from ...hub.live.reader import LiveReader

FULL_BYTES: Final = 32 * 1024
"""Unsent bytes above which a reader counts as not keeping up: more than the kernel takes."""


class LiveConnection(asyncio.Protocol):
    """Writes what its reader is sent. Whatever the client sends is discarded."""

    __slots__ = ("_transport", "_unread", "reader")

    def __init__(self, reader: LiveReader) -> None:
        self.reader = reader
        self._unread = UnreadTimer()
        self._transport: asyncio.Transport

    def begin(self) -> None:
        self.reader.begin(self)

    # -- the socket's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=FULL_BYTES)
        # What it has of a queue would be nobody else's as long.
        end_without_acknowledgement(transport)
        self._transport.write(self.reader.form.hello)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unread.stop()
        self.reader.lost()

    def pause_writing(self) -> None:
        self.reader.full()

    def resume_writing(self) -> None:
        self.reader.drained()

    # -- the reader's side

    @property
    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        self._unread.close(self._transport)

    def abort(self) -> None:
        self._transport.abort()
