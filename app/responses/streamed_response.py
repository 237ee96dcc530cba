"""Sends large answers piece by piece."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ...core.errors import WarrenError

logger = logging.getLogger(__name__)

SEND_S: Final = 30.0
"""How long sending a piece may take: the answer is in memory as long."""
PIECE_BYTES: Final = 1024 * 1024

Buffer = bytes | bytearray | memoryview


class StreamedResponse(StreamingResponse):
    """Sends an answer piece by piece, and then releases its memory."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes | memoryview],
        headers: Mapping[str, str],
        media_type: str,
        memory: AsyncExitStack,
        status: int = 200,
    ) -> None:
        super().__init__(pieces, status, headers, media_type)
        self._pieces = pieces
        self._memory = memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises `ClientDisconnect` for a client that takes too long to read."""
        async with self._memory, aclosing(self._pieces), _gone(receive) as gone:
            start = {"status": self.status_code, "headers": self.raw_headers}
            await send({"type": "http.response.start", **start})
            if scope["method"] != "HEAD":
                await self._send_pieces(scope["path"], send, gone)
            await send({"type": "http.response.body", "body": b""})

    async def _send_pieces(self, path: str, send: Send, gone: asyncio.Task[None]) -> None:
        try:
            async for piece in self._pieces:
                if gone.done():
                    raise ClientDisconnect
                async with asyncio.timeout(SEND_S):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        except (TimeoutError, WarrenError) as error:
            # The status was sent: all that is left is to send no end.
            reason = str(error) or f"the client took {SEND_S:.0f} s for a piece"
            logger.warning("%s: the answer was cut off: %s", path, reason)
            raise ClientDisconnect from error


@asynccontextmanager
async def _gone(receive: Receive) -> AsyncIterator[asyncio.Task[None]]:
    """Enters with a task that is done once the client has gone: asking for that before each piece
    costs as much as sending it."""

    async def wait() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task = asyncio.create_task(wait())
    try:
        yield task
    finally:
        task.cancel()


def part_of(buffers: Iterable[Buffer], wanted: range) -> Iterator[memoryview]:
    """Yields what many buffers have at these positions of all their bytes. Nothing is copied."""
    start = 0
    for buffer in buffers:
        yield memoryview(buffer)[max(0, wanted.start - start) : max(0, wanted.stop - start)]
        start += len(buffer)


async def pieces_of(buffers: Iterable[Buffer]) -> AsyncGenerator[bytes]:
    """Yields the bytes of many buffers in pieces of 1 MiB to 2 MiB, the last one smaller. They are
    copied piece by piece: memory for all at once would be fresh pages, which the system clears."""
    waiting: list[memoryview] = []
    size = 0
    for buffer in buffers:
        for at in range(0, len(buffer), PIECE_BYTES):
            waiting.append(memoryview(buffer)[at : at + PIECE_BYTES])
            size += len(waiting[-1])
            if size >= PIECE_BYTES:
                yield b"".join(waiting)
                waiting, size = [], 0
    yield b"".join(waiting)
