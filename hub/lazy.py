"""Values that are made at their first use, for their imports would delay the start."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Lazy(Generic[Made]):
    """Makes a value at its first use, once, also if it is requested several times at once."""

    def __init__(self, make: Callable[[], Awaitable[Made]]) -> None:
        self._make = make
        self._turn = asyncio.Lock()
        self.made: Made | None = None
        """The value, None before its first use."""

    async def get(self) -> Made:
        if self.made is None:
            async with self._turn:
                if self.made is None:
                    self.made = await self._make()
        return self.made
