"""Connections to the active hub, each for one request at a time."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress
from typing import Final, NamedTuple

CONNECT_S: Final = 2.0
KEPT_S: Final = 20.0
"""Less than the active hub keeps an idle connection."""
_OPTIONS: Final = {"SO_KEEPALIVE": 1}
# A machine that is cut off is noticed as soon as PostgreSQL notices it.
_TCP_OPTIONS: Final = {
    "TCP_KEEPIDLE": 3, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 6_000,
    "TCP_NODELAY": 1,
}  # fmt: skip


class HubLink(NamedTuple):
    """A connection to the hub at an address."""

    address: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def is_usable(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing())


class HubLinks:
    """Opens connections, and keeps those that are idle for some seconds."""

    def __init__(self) -> None:
        self._idle: list[tuple[float, HubLink]] = []
        self._used: set[HubLink] = set()

    async def take(self, address: str) -> HubLink:
        """Raises `OSError` or `TimeoutError`."""
        until_s = time.monotonic() - KEPT_S
        while self._idle:
            since_s, link = self._idle.pop()
            if link.is_usable() and link.address == address and since_s > until_s:
                self._used.add(link)
                return link
            link.writer.close()
        link = await _connected(address)
        self._used.add(link)
        return link

    def keep(self, link: HubLink) -> None:
        """Takes one back after a whole answer."""
        self._used.discard(link)
        self._idle.append((time.monotonic(), link))

    def drop(self, link: HubLink) -> None:
        """Ends one whose request or answer is not whole."""
        self._used.discard(link)
        link.writer.transport.abort()

    def close(self) -> None:
        """Ends all: the hub at their other end is not active any more."""
        for link in (*self._used, *(one for _, one in self._idle)):
            link.writer.transport.abort()
        self._idle.clear()


async def _connected(address: str) -> HubLink:
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(CONNECT_S):
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    opened: socket.socket = writer.get_extra_info("socket")
    for level, options in ((socket.SOL_SOCKET, _OPTIONS), (socket.IPPROTO_TCP, _TCP_OPTIONS)):
        for name, value in options.items():
            with suppress(AttributeError, OSError):  # systems without it notice later
                opened.setsockopt(level, getattr(socket, name), value)
    return HubLink(address, reader, writer)
