"""Writes the head of a response together with its body."""

from __future__ import annotations

import asyncio
from typing import Final

MAX_JOINED_BYTES: Final = 64 * 1024
"""Copying a larger body would cost more than another write."""
_HAS_LENGTH: Final = b"\r\ncontent-length: "


class JoinedWrites:
    """The transport of one response, which joins the first writes. A head that announces a body's
    length is held until the body begins: two small writes would cost two system calls and two
    packets."""

    __slots__ = ("_buffered_head", "_is_begun", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._buffered_head = b""
        self._is_begun = False

    def write(self, data: bytes) -> None:
        if not self._is_begun and _HAS_LENGTH in data:
            self._buffered_head = data
        elif len(data) <= MAX_JOINED_BYTES:
            head, self._buffered_head = self._buffered_head, b""
            self._transport.write(head + data)
        else:
            self.flush()
            self._transport.write(data)
        self._is_begun = True

    def flush(self) -> None:
        """Writes what was held back."""
        if self._buffered_head:
            head, self._buffered_head = self._buffered_head, b""
            self._transport.write(head)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def abort(self) -> None:
        """Closes the connection at once; what is not sent yet is dropped."""
        self._transport.abort()

    def close(self) -> None:
        self.flush()
        self._transport.close()
