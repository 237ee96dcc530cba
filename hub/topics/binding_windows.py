"""Keeps the binding of a topic's queues and the distribution of its content apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class BindingWindows:
    """Lets either any number of queues be bound, or content be distributed: so it is known of each
    queue whether it got the content. A distribution that waits has precedence."""

    __slots__ = ("_are_open", "_is_unused", "_users")

    def __init__(self) -> None:
        self._users = 0
        self._are_open = asyncio.Event()
        self._is_unused = asyncio.Event()
        self._are_open.set()
        self._is_unused.set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Encloses the binding of a queue."""
        while not self._are_open.is_set():
            await self._are_open.wait()
        self._users += 1
        self._is_unused.clear()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._is_unused.set()

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """Encloses a distribution; there is one at a time."""
        self._are_open.clear()
        try:
            await self._is_unused.wait()
            yield
        finally:
            self._are_open.set()
