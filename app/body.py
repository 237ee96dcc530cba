"""Reading a request body, bounded, and counted while it has come in part."""

from __future__ import annotations

import asyncio
from io import BytesIO

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from ..core.resources.partial_content import PartialContent, PartialContents
from .problems import Problem, busy


async def read_body(
    receive: Receive,
    limit: int,
    unfinished: PartialContents,
    owner: str,
    owner_max_bytes: int | None = None,
) -> bytes:
    """The whole body; what has come of it counts for `owner`, a user or an address, whose limit
    is a share of the memory limit unless it is given.

    Raises `Problem` 413 past `limit` bytes, 503 if the owner has too much under way or memory is
    short, and `ClientDisconnect` if the client hangs up.
    """
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        body: bytes = message.get("body", b"")
        _check(len(body), limit)
        return body
    try:
        async with asyncio.timeout(None) as patience:
            part = unfinished.begin(owner, lambda _: patience.reschedule(0), owner_max_bytes)
            try:
                return await _gather(message, receive, limit, part)
            finally:
                part.close()
    except TimeoutError:
        raise busy("memory is short, and the body was not complete") from None


async def _gather(message: Message, receive: Receive, limit: int, part: PartialContent) -> bytes:
    """The body is in memory once: `BytesIO` gives the buffer that it has gathered, no copy."""
    gathered = BytesIO()
    while message["type"] == "http.request":
        piece = message.get("body", b"")
        gathered.write(piece)
        _check(gathered.tell(), limit)
        if not message.get("more_body", False):
            return gathered.getvalue()
        if not part.claim(len(piece)):
            raise busy("too many bytes of unfinished requests of this client, or this user")
        part.grow(len(piece))
        message = await receive()
    raise ClientDisconnect


def _check(size: int, limit: int) -> None:
    if size > limit:
        raise too_large(limit)


def too_large(limit: int) -> Problem:
    return Problem(413, f"the body has more than {limit} bytes", headers={"Connection": "close"})
