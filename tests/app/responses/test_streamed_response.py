"""Large answers: in pieces, and given up when the client has gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from warrenmq.app.responses.streamed_response import PIECE_BYTES, StreamedResponse, pieces_of

SCOPE = {"type": "http", "method": "GET", "path": "/streams"}


@pytest.mark.parametrize("sizes", [[], [1], [100, PIECE_BYTES, 7], [5 * PIECE_BYTES + 1]])
async def test_pieces_have_a_bound_and_all_bytes(sizes: list[int]) -> None:
    buffers = [bytes([number]) * size for number, size in enumerate(sizes, 1)]
    found = [piece async for piece in pieces_of(buffers)]
    assert b"".join(found) == b"".join(buffers)
    assert all(len(piece) <= 2 * PIECE_BYTES for piece in found)


async def test_a_client_that_has_gone_gets_no_more_and_its_memory_is_free() -> None:
    gone = asyncio.Event()
    sent: list[Any] = []
    freed: list[bool] = []

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message.get("body"))
        await asyncio.sleep(0)

    async def pieces() -> AsyncGenerator[bytes]:
        yield b"first"
        gone.set()
        while True:
            await asyncio.sleep(0)
            yield b"more"

    memory = AsyncExitStack()
    memory.callback(freed.append, True)
    async with asyncio.timeout(10):
        with pytest.raises(ClientDisconnect):
            await StreamedResponse(pieces(), {}, "text/plain", memory)(SCOPE, receive, send)
    assert sent[:2] == [None, b"first"] and freed
