"""A webhook target that costs next to nothing: answers challenges, counts POSTs."""

from __future__ import annotations

import asyncio
import mmap
import re
import socket
import struct
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
STAMP = struct.Struct(">QQ")
"""A timed body: when it was published (monotonic nanoseconds), and its number."""
HANG = "hang"
"""Targets below this path take a POST and never answer."""


def counters_for(subscriptions: int, timed: int = 0) -> memoryview:
    """Shared counters, with room for the time of each POST behind them."""
    places = WRONG + 1 + subscriptions + timed
    return memoryview(mmap.mmap(-1, places * 8)).cast("Q")


class _Target(asyncio.Protocol):
    """One persistent connection from the broker; the path's last segment is the subscription."""

    def __init__(self, counters: memoryview, body: bytes | None, times_at: int) -> None:
        self._counters, self._body, self._times_at = counters, body, times_at
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
        counters, now = self._counters, time.monotonic_ns()
        path = unquote_to_bytes(line[1].partition(b"?")[0])
        if path.startswith(b"/" + HANG.encode()):
            return
        self._transport.write(NO_CONTENT)
        counters[WRONG + 1 + int(path.rpartition(b"/")[2])] += 1
        if self._body is None:
            counters[self._times_at + counters[COUNT]] = now - STAMP.unpack_from(body)[0]
        else:
            counters[WRONG] += body != self._body
        counters[COUNT] += 1
        counters[FIRST_NS] = counters[FIRST_NS] or now
        counters[LAST_NS] = now


def serve(
    control: Control,
    listener: socket.socket,
    counters: memoryview,
    body: bytes | None,
    times_at: int = 0,
) -> None:
    """Serves on a socket that listens already, until a word comes over the control pipe.

    Without `body` each POST is timed: how long it took stands from `times_at` on.
    """
    uvloop.run(_serve(control, listener, counters, body, times_at))


async def _serve(
    control: Control,
    listener: socket.socket,
    counters: memoryview,
    body: bytes | None,
    times_at: int,
) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    server = await loop.create_server(
        lambda: _Target(counters, body, times_at), sock=listener, backlog=BACKLOG
    )
    control.ready()
    loop.add_reader(control.pipe.fileno(), stopped.set)
    await stopped.wait()
    server.close()
