"""Sends replies to requestors, piece by piece, so that one who reads nothing does not keep its
reply in memory."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Scope, Send

from ...hub.tunnels.reply import Reply
from ..access.local_requests import CYCLE

PIECE_BYTES: Final = 256 * 1024
SEND_S: Final = 30.0
"""How long sending a piece may take."""
_BODILESS: Final = frozenset((204, 304))


async def send_reply(scope: Scope, send: Send, reply: Reply) -> None:
    """Returns when the requestor has read nearly all, or its connection has ended, as that of one
    who is too slow does."""
    headers, body = reply.fields, reply.body
    if scope["method"] == "HEAD" or reply.status in _BODILESS:
        body = b""
    else:
        headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if len(body) > PIECE_BYTES:
        await _send_pieces(scope, send, body)
        body = b""
    await send({"type": "http.response.body", "body": body})


async def _send_pieces(scope: Scope, send: Send, body: bytes) -> None:
    cycle = scope["extensions"][CYCLE]["cycle"]
    try:
        for at in range(0, len(body), PIECE_BYTES):
            piece = body[at : at + PIECE_BYTES]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            async with asyncio.timeout(SEND_S):
                await cycle.flow.drain()
    except TimeoutError:
        cycle.transport.abort()
        await cycle.flow.drain()  # until the loss is known
