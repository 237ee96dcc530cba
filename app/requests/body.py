"""Reads a request body with a size limit; incomplete bodies count towards memory limits."""

from __future__ import annotations

import asyncio
from io import BytesIO

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from ...core.resources.partial_content import PartialContent, PartialContents
from ..problems import Problem, busy


async def read_body(
    receive: Receive,
    limit: int,
    unfinished: PartialContents,
    owner: str,
    owner_max_bytes: int | None = None,
) -> bytes:
    """Returns the whole body.

    Until it is complete, its bytes count for `owner`, a user or an address, up to
    `owner_max_bytes`; without it, up to a share of the memory limit.

    Raises `Problem` 413 past `limit` bytes, 503 if the owner has too many incomplete bodies or
    memory is short, and `ClientDisconnect` if the client disconnects.
    """
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        body: bytes = message.get("body", b"")
        _check(len(body), limit)
        return body
    try:
        async with asyncio.timeout(None) as timeout:
            part = unfinished.begin(owner, lambda _: timeout.reschedule(0), owner_max_bytes)
            try:
                return await _gather(message, receive, limit, part)
            finally:
                part.close()
    except TimeoutError:
        raise busy("memory is short, and the body was not complete") from None


async def _gather(message: Message, receive: Receive, limit: int, part: PartialContent) -> bytes:
    """Collects the body in a `BytesIO`, whose `getvalue` does not copy."""
    gathered = BytesIO()
    while message["type"] == "http.request":
        chunk = message.get("body", b"")
        gathered.write(chunk)
        _check(gathered.tell(), limit)
        if not message.get("more_body", False):
            return gathered.getvalue()
        if not part.claim(len(chunk)):
            raise busy("too many bytes of incomplete requests from this client or user")
        part.grow(len(chunk))
        message = await receive()
    raise ClientDisconnect


def _check(size: int, limit: int) -> None:
    if size > limit:
        raise too_large(limit)


def too_large(limit: int) -> Problem:
    """Returns the 413 for a body of more than `limit` bytes."""
    return Problem(413, f"the body has more than {limit} bytes", headers={"Connection": "close"})
