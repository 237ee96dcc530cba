"""Bounds how many answers are in memory at once, fairly between users."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class AnswerSlots:
    """A limited number of slots for answers, shared fairly between users. A user takes no more than
    are left free, so that readers who are slow, or never read, leave some for others."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._taken: Counter[str] = Counter()
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def one_for(self, user: str, wait_s: float) -> AsyncIterator[None]:
        """Takes a slot. Raises `TimeoutError` if there is none for too long."""
        async with asyncio.timeout(wait_s):
            while self._taken[user] >= self._count - self._taken.total() - 1:
                self._changed.clear()
                await self._changed.wait()
        self._taken[user] += 1
        try:
            yield
        finally:
            self._taken[user] -= 1
            if not self._taken[user]:
                del self._taken[user]
            self._changed.set()
