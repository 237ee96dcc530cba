"""Reading a request body, bounded."""

from __future__ import annotations

from io import BytesIO

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from .problems import Problem


async def read_body(receive: Receive, limit: int) -> bytes:
    """Raises `Problem` 413 past `limit` bytes and `ClientDisconnect` if the client hangs up.

    The body is in memory once: `BytesIO` gives the buffer that it has gathered, and not a copy.
    """
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        body: bytes = message.get("body", b"")
        _check(len(body), limit)
        return body
    gathered = BytesIO()
    while message["type"] == "http.request":
        gathered.write(message.get("body", b""))
        _check(gathered.tell(), limit)
        if not message.get("more_body", False):
            return gathered.getvalue()
        message = await receive()
    raise ClientDisconnect


def _check(size: int, limit: int) -> None:
    if size > limit:
        raise too_large(limit)


def too_large(limit: int) -> Problem:
    return Problem(413, f"the body has more than {limit} bytes", headers={"Connection": "close"})
