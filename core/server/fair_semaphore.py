"""Lets a few in at once; of those who wait, each address has its turn, however many it sends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSemaphore:
    """`address` may be any text that says who belongs together."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Those whose turn is next come first."""

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Waits for its turn, which lasts until the batch ends."""
        await self._enter(address)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, address: str) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(address, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()  # it was called in that moment
            raise

    def _leave(self) -> None:
        """The next address has its turn, and is behind all others then."""
        while self._waiting:
            address = next(iter(self._waiting))
            line = self._waiting.pop(address)
            turn = line.popleft()
            if line:
                self._waiting[address] = line
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
