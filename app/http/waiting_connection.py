"""A connection that was taken over while its request waits: a socket and one object, in place of
the task, parser and buffers of a request, some 20 kB. It goes back to the HTTP listener behind the
answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast

from .unread import UnreadTimer

if TYPE_CHECKING:
    from .takeover import Successor

MAX_BEHIND_BYTES: Final = 64 * 1024
"""The limit of requests that a client sends behind the one that waits; reading stops there."""

Fields = Sequence[tuple[str, str]]


class WaitingConnection(asyncio.Protocol):
    """Waits for its answer; `fields` are those of every answer. Without a `successor` the
    connection ends with it."""

    __slots__ = (
        "_behind", "_fields", "_is_full", "_successor", "_transport", "_unread", "is_answered",
    )  # fmt: skip

    def __init__(self, fields: Fields, successor: Successor | None) -> None:
        self._fields = fields
        self._successor = successor
        self._behind = b""
        self._is_full = False
        self._unread = UnreadTimer()
        self.is_answered = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._behind += data
        if len(self._behind) >= MAX_BEHIND_BYTES:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unread.stop()

    def pause_writing(self) -> None:
        self._is_full = True
        self._unread.start(self._transport)

    def resume_writing(self) -> None:
        self._is_full = False
        self._unread.stop()
        if self.is_answered:
            self._go_on()

    @property
    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close_behind(self) -> None:
        """Closes the connection behind the answer."""
        self._successor = None

    def answer(self, status: int, fields: Fields, body: bytes, *, is_head: bool = False) -> None:
        """Sends the answer; to HEAD without its body."""
        head = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
        head += [f"{name}: {value}" for name, value in (*self._fields, *fields)]
        if status != 204:
            head.append(f"Content-Length: {len(body)}")
        if self._successor is None:
            head.append("Connection: close")
        self._transport.write(
            "\r\n".join([*head, "", ""]).encode("latin-1") + (b"" if is_head else body)
        )
        self.is_answered = True
        if not self._is_full:
            self._go_on()

    def _go_on(self) -> None:
        """Serves the next request when this answer is sent, or nearly."""
        if self._successor is None:
            self._unread.close(self._transport)
        else:
            self._successor.follow(self._transport, self._behind)
