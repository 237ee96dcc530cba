"""A webhook target that costs next to nothing: answers challenges, counts POSTs."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from typing import cast
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit

import uvloop

from .worker import Control

BACKLOG = 1_024
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)

COUNT, FIRST_NS, LAST_NS, WRONG = range(4)
"""Places in the shared counters; the count of subscription n stands at `WRONG + 1 + n`."""


class _Target(asyncio.Protocol):
    """One kept connection from the broker; the path's last segment is the subscription."""

    def __init__(self, counters: memoryview, body: bytes) -> None:
        self._counters, self._body = counters, body
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end]
            length = _LENGTH.search(head)
            if length is None and head.startswith(b"POST"):
                raise ValueError(f"a POST without Content-Length: {head!r}")
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._data) < whole:
                return
            body, self._data = self._data[end + 4 : whole], self._data[whole:]
            self._answer(head.split(b" ", 2), body)

    def _answer(self, line: list[bytes], body: bytes) -> None:
        if line[0] == b"GET":
            query = urlsplit(line[1].decode()).query
            challenge = parse_qs(query)["hub.challenge"][0].encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"
            self._transport.write(head % len(challenge) + challenge)
            return
        self._transport.write(NO_CONTENT)
        counters, now = self._counters, time.monotonic_ns()
        path = unquote_to_bytes(line[1].partition(b"?")[0])
        counters[WRONG + 1 + int(path.rpartition(b"/")[2])] += 1
        counters[COUNT] += 1
        counters[WRONG] += body != self._body
        counters[FIRST_NS] = counters[FIRST_NS] or now
        counters[LAST_NS] = now


def serve(control: Control, listener: socket.socket, counters: memoryview, body: bytes) -> None:
    """Serves on a socket that listens already, until a word comes over the control pipe."""
    uvloop.run(_serve(control, listener, counters, body))


async def _serve(
    control: Control, listener: socket.socket, counters: memoryview, body: bytes
) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    server = await loop.create_server(
        lambda: _Target(counters, body), sock=listener, backlog=BACKLOG
    )
    control.ready()
    loop.add_reader(control.pipe.fileno(), stopped.set)
    await stopped.wait()
    server.close()
