"""Passes requests on to the active hub, and its answers back: piece by piece, as they come."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final, cast

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ...hub.connection_fields import connection_fields
from ..access.local_requests import is_gone
from ..http.takeover import UpgradeResponse, offers_websocket
from ..logs.request_context import REQUEST_ID_HEADER, current_ids
from ..problems import Problem
from .forwarded_request import ForwardedRequest, LostHub, is_chunked_body
from .hops import FIELD, Hops
from .links import HubLink, HubLinks
from .splice import Side

AGAIN: Final = {"Retry-After": "1"}
"""When a client should ask again."""
_SWITCHED: Final = b"HTTP/1.1 101 "
_OWN: Final = frozenset((b"expect", FIELD, REQUEST_ID_HEADER))
"""Fields that are not the client's on the way to the active hub."""


class Forwarding:
    """Passes requests on to the hub at an address."""

    def __init__(self, hops: Hops) -> None:
        self._hops = hops
        self.links = HubLinks()

    async def reach(self, address: str) -> HubLink:
        """Raises `Problem` 503."""
        try:
            return await self.links.take(address)
        except (OSError, TimeoutError) as error:
            text = f"the active hub can't be reached at {address}: {error or 'no answer'}"
            raise Problem(503, text, headers=AGAIN) from error

    async def __call__(self, scope: Scope, receive: Receive, send: Send, address: str) -> None:
        """Raises `Problem`: 503 if nothing was sent, 502 if it is unknown what was done."""
        link = await self.reach(address)
        link.writer.write(self._head(scope))
        try:
            if offers_websocket(scope):
                await self._switch(scope, receive, send, link)
            else:
                await self._ask(scope, receive, send, link)
        except BaseException as error:
            self.links.drop(link)
            if not isinstance(error, LostHub):
                raise
            text = "the active hub has ended before it answered; it may have done what was asked"
            raise Problem(502, text, headers=AGAIN) from error

    async def _ask(
        self, scope: Scope, receive: Receive, send: Send, link: HubLink, read: bytes = b""
    ) -> None:
        request = ForwardedRequest(scope, receive, send, link)
        await request.run(read)
        if request.is_whole:
            self.links.keep(link)
        else:
            self.links.drop(link)

    async def _switch(self, scope: Scope, receive: Receive, send: Send, link: HubLink) -> None:
        """Joins the two connections if the active hub accepts the WebSocket."""
        try:
            head = await link.reader.readuntil(b"\r\n\r\n")
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            raise LostHub from error
        if not head.startswith(_SWITCHED):
            await self._ask(scope, receive, send, link, head)
            return
        if is_gone(scope):
            raise ClientDisconnect
        client, hub = Side(), Side(partial(self.links.drop, link))
        client.join(hub)
        transport = cast(asyncio.Transport, link.writer.transport)
        hub.connection_made(transport)
        transport.set_protocol(hub)
        link.reader.feed_eof()
        early = await link.reader.read()
        await UpgradeResponse(head + early, client, transport.resume_reading)(scope, receive, send)

    def _head(self, scope: Scope) -> bytes:
        """Returns the request's head as the active hub gets it."""
        query: bytes = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        headers = scope["headers"]
        left_out = connection_fields(headers) | _OWN
        fields = [field for field in headers if field[0] not in left_out]
        fields.append((FIELD, self._hops.sign({**scope, "headers": fields})))
        if (ids := current_ids()) is not None:
            fields.append((REQUEST_ID_HEADER, ids.request.encode()))
        if offers_websocket(scope):
            fields += [(b"connection", b"upgrade"), (b"upgrade", b"websocket")]
        elif is_chunked_body(headers):
            fields.append((b"transfer-encoding", b"chunked"))
        line = b"%b %b HTTP/1.1\r\n" % (scope["method"].encode(), target)
        return line + b"".join(b"%b: %b\r\n" % field for field in fields) + b"\r\n"
