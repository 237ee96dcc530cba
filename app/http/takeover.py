"""Lets a route keep the connection of its request, for an answer without an end.

The task, parser and buffers of a request take some 20 kB; a connection that is taken over has none
of them. What was pipelined behind the request and is not parsed yet goes to the new protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ..access.local_requests import CYCLE, is_gone
from ..problems import Problem
from .access_log import REFUSED

TAKEOVER: Final = "warren.takeover"
"""The extension of a scope by which a route takes over the connection."""


class Successor:
    """Serves HTTP again on a connection that was taken over, behind a whole answer."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], asyncio.Protocol]) -> None:
        self._make = make

    def follow(self, transport: asyncio.Transport, received: bytes) -> None:
        """Parses what the client has sent meanwhile."""
        protocol = self._make()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        transport.resume_reading()
        if received:
            protocol.data_received(received)


async def drained(scope: Scope) -> None:
    """Returns when the client has read enough of what it was sent before. A protocol that takes the
    connection over writes past this bound, so it must not begin above it."""
    flow = scope["extensions"][CYCLE]["cycle"].flow
    if flow.write_paused:
        await flow.drain()


class DeferredResponse:
    """No answer yet: the connection belongs to `protocol`, and `begin` is called."""

    def __init__(self, protocol: asyncio.Protocol, begin: Callable[[], None]) -> None:
        self._protocol = protocol
        self._begin = begin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises `ClientDisconnect`."""
        if is_gone(scope):
            raise ClientDisconnect
        scope["extensions"][CYCLE][REFUSED] = ("waits", 0)  # for the access log
        scope["extensions"][TAKEOVER]["take_over"](self._protocol)
        self._begin()


def successor_of(scope: Scope) -> Successor | None:
    """Returns what follows a takeover; None where the connection ends with the answer."""
    make = scope["extensions"][TAKEOVER]["successor"]
    return None if make is None else make()


class EndlessResponse:
    """The head of an answer; then the connection belongs to `protocol`, and `begin` is called."""

    def __init__(
        self,
        headers: Mapping[str, str],
        protocol: asyncio.Protocol,
        begin: Callable[[], None],
    ) -> None:
        self._headers = headers
        self._protocol = protocol
        self._begin = begin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises `Problem` 505 for HTTP/1.0, which has no chunks, and `ClientDisconnect`."""
        if scope.get("http_version") == "1.0":
            raise Problem(505, "a stream needs HTTP/1.1; for nginx: proxy_http_version 1.1")
        fields = [(name.encode(), value.encode()) for name, value in self._headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": fields})
        if is_gone(scope):
            raise ClientDisconnect
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        scope["extensions"][TAKEOVER]["take_over"](self._protocol)
        self._begin()


def offers_websocket(scope: Scope) -> bool:
    """Returns whether the request is a WebSocket handshake."""
    return bool(scope.get("extensions", {}).get(TAKEOVER, {}).get("offers_websocket"))


class UpgradeResponse:
    """A 101 that switches the connection to `protocol`; then `begin` is called."""

    def __init__(self, head: bytes, protocol: asyncio.Protocol, begin: Callable[[], None]) -> None:
        self._head = head
        self._protocol = protocol
        self._begin = begin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises `ClientDisconnect`."""
        if is_gone(scope):
            raise ClientDisconnect
        cycle = scope["extensions"][CYCLE]
        cycle[REFUSED] = (101, 0)  # for the access log
        cycle["cycle"].transport.write(self._head)
        scope["extensions"][TAKEOVER]["take_over"](self._protocol)
        self._begin()
