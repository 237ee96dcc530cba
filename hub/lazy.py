"""Things made at their first use: what they import takes longer than the server may to start."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Lazy(Generic[Made]):
    """Makes one value, however many ask for it at the same time."""

    def __init__(self, make: Callable[[], Awaitable[Made]]) -> None:
        self._make = make
        self._turn = asyncio.Lock()
        self.made: Made | None = None
        """The value, or None while nobody has asked."""

    async def get(self) -> Made:
        if self.made is None:
            async with self._turn:
                if self.made is None:
                    self.made = await self._make()
        return self.made
