"""Long work of one request, in slices."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final

SLICE_S: Final = 0.001
"""A request of another waits for some three slices: its bytes, its task and its answer."""


class TimeSlice:
    """Yields to the event loop whenever a millisecond has passed."""

    def __init__(self) -> None:
        self._until_s = perf_counter() + SLICE_S

    @property
    def is_over(self) -> bool:
        return perf_counter() >= self._until_s

    async def yield_if_over(self) -> None:
        if self.is_over:
            await asyncio.sleep(0)
            self._until_s = perf_counter() + SLICE_S
