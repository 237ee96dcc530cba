"""One request that is passed on, and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import httptools
from starlette.types import Message, Receive, Scope, Send

from ...hub.connection_fields import connection_fields
from ..access.local_requests import CYCLE
from ..http.disconnects import when_gone
from ..logs.request_context import REQUEST_ID_HEADER
from .links import HubLink

READ_BYTES: Final = 64 * 1024
_OWN: Final = frozenset((b"date", REQUEST_ID_HEADER))
"""Fields that each answer of this server has."""


class LostHub(Exception):
    """The active hub has ended before it has begun to answer."""


class ForwardedRequest:
    """Its methods with `on_` are callbacks of the parser of the answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, link: HubLink) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._link = link
        self._parser = httptools.HttpResponseParser(self)
        self._fields: list[tuple[bytes, bytes]] = []
        self._parsed: list[Message] = []
        self._has_begun = False
        self._is_sent = False
        self._is_over = False

    @property
    def is_whole(self) -> bool:
        """Whether the connection can take another request."""
        return self._is_sent and self._is_over and bool(self._parser.should_keep_alive())

    async def run(self, read: bytes) -> None:
        """Passes on the body, and the answer, of which this much was read already. Raises
        `LostHub`; an answer that is not whole is cut off."""
        body = asyncio.create_task(self._pass_body())
        try:
            await self._pass_answer(read)
        except (OSError, httptools.HttpParserError) as error:
            if not self._has_begun:
                raise LostHub from error
            await self._cut()
        finally:
            body.cancel()
            await asyncio.gather(body, return_exceptions=True)

    async def _pass_body(self) -> None:
        """Ends the connection to the active hub when the client has gone."""
        writer, is_chunked = self._link.writer, is_chunked_body(self._scope["headers"])
        while (message := await self._receive())["type"] == "http.request":
            if body := message.get("body"):
                writer.write(b"%x\r\n%b\r\n" % (len(body), body) if is_chunked else body)
                await writer.drain()
            if not message.get("more_body"):
                if is_chunked:
                    writer.write(b"0\r\n\r\n")
                self._is_sent = True
        writer.transport.abort()

    async def _pass_answer(self, data: bytes) -> None:
        while True:
            self._parser.feed_data(data)
            for message in self._parsed:
                self._has_begun = True
                await self._send(message)
            self._parsed.clear()
            if self._is_over:
                return
            data = await self._link.reader.read(READ_BYTES)
            if not data:
                raise ConnectionResetError("the active hub has ended")

    async def _cut(self) -> None:
        """Ends the client's connection, so that it takes no part of an answer for the whole."""
        gone = asyncio.Event()
        when_gone(self._scope, gone.set)
        self._scope["extensions"][CYCLE]["cycle"].transport.abort()
        await gone.wait()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        left_out = connection_fields(self._fields) | _OWN
        headers = [field for field in self._fields if field[0] not in left_out]
        status = self._parser.get_status_code()
        self._parsed.append({"type": "http.response.start", "status": status, "headers": headers})
        if self._scope["method"] == "HEAD":
            self.on_message_complete()

    def on_body(self, body: bytes) -> None:
        self._parsed.append({"type": "http.response.body", "body": body, "more_body": True})

    def on_message_complete(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._parsed.append({"type": "http.response.body", "body": b""})


def is_chunked_body(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Returns whether a request has a body of unknown length."""
    return any(name == b"transfer-encoding" for name, _ in headers)
