"""Long polls of `/stream`: one answer with what there is, or with what comes first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ...hub.live.reader import LiveReader
from ..http.waiting_connection import Fields, WaitingConnection

if TYPE_CHECKING:
    from ..http.takeover import Successor

MEDIA_TYPE: Final = "application/json"
WAIT_S: Final = 20
WAIT_MAX_S: Final = 60
"""Proxies give up after this time by default."""
AT_LEAST_S: Final = 0.05
"""Enough to read what is there already."""
ENOUGH_BYTES: Final = 256 * 1024
"""An answer that has so much is complete; the next poll goes on behind it."""
_FIELDS: Final = (("Cache-Control", "no-store"), ("Vary", "Accept"), ("Content-Type", MEDIA_TYPE))


class LivePoll(WaitingConnection):
    """Collects what its reader is sent, until something has come or `wait_s` is over. Answers
    `{"messages": [...], "cursor"}`; the list is empty when nothing has come in time."""

    __slots__ = ("_is_due", "_is_head", "_pieces", "_reader", "_size_bytes", "_timer", "_wait_s")
    unsent_bytes: Final = 0
    """It never lags behind: it leaves its source when it has enough."""

    def __init__(
        self,
        reader: LiveReader,
        wait_s: int,
        fields: Fields,
        successor: Successor | None,
        *,
        is_head: bool,
    ) -> None:
        super().__init__((*fields, *_FIELDS), successor)
        self._reader = reader
        self._wait_s = max(wait_s, AT_LEAST_S)
        self._is_head = is_head
        self._is_due = False
        self._pieces: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._size_bytes = 0

    def begin(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._wait_s, self._finish)
        self._reader.begin(self)

    # -- the reader's side

    def write(self, data: bytes) -> None:
        if not data:
            return
        self._pieces.append(data)
        self._size_bytes += len(data)
        if self._size_bytes >= ENOUGH_BYTES:
            self._leave()
        self._finish_soon()

    def close(self) -> None:
        self.close_behind()  # The server may be stopping.
        self._finish_soon()

    def abort(self) -> None:
        """Does nothing, for it has no unsent bytes."""

    # -- the socket's side

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._leave()

    # -- inside

    def _finish_soon(self) -> None:
        """Answers in the next round of the loop: what comes in this one belongs to it."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._finish)

    def _finish(self) -> None:
        if self.is_answered or self.is_closing:
            return
        cursor = self._reader.position()
        self._leave()
        texts = b",".join(self._pieces)
        body = b'{"messages":[%b],"cursor":"%b"}\n' % (texts, cursor.encode())
        self.answer(200, (), body, is_head=self._is_head)

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._reader.lost()
