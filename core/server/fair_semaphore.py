"""A semaphore that is fair between addresses: those that wait have their turns round-robin."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSemaphore:
    """Lets `at_once` tasks in; `address` may be any text that groups the waiting ones."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By address; the address whose turn is next is first."""

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Waits for its turn, which lasts until the context ends."""
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
                self._leave()  # cancelled after its turn had come
            raise

    def _leave(self) -> None:
        """Gives the turn to the next address, which then goes behind all others."""
        while self._waiting:
            address = next(iter(self._waiting))
            turns = self._waiting.pop(address)
            turn = turns.popleft()
            if turns:
                self._waiting[address] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
