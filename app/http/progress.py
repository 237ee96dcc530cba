"""Refuses a request that comes too slowly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..problems import Problem
from .meter import RequestMeter

MAX_STALL_S = 10.0
"""A whole head, and at least `MIN_BODY_BYTES` of a body, must come within this time."""
MIN_BODY_BYTES = 10 * 1024


class ProgressTimer:
    """Calls `on_stall` with a `Problem` 408 unless the request makes progress, or `is_our_turn`:
    the client waits for the server."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        meter: RequestMeter,
        is_our_turn: Callable[[], bool],
        on_stall: Callable[[Problem], None],
    ) -> None:
        self._loop = loop
        self._meter = meter
        self._is_our_turn = is_our_turn
        self._on_stall = on_stall
        self._was_our_turn = False
        """At the last check: the time until the next one was not all the client's."""
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Does nothing if the timer runs already."""
        if self._timer is None:
            self._timer = self._loop.call_later(MAX_STALL_S, self.check)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def check(self) -> None:
        """Starts the timer again if there was progress, or if none could be."""
        self.stop()
        progress = self._meter.take_progress()
        was_our_turn, self._was_our_turn = self._was_our_turn, self._is_our_turn()
        if was_our_turn or self._was_our_turn:
            self.start()
        elif self._meter.in_head:
            self._on_stall(Problem(408, f"the head was not complete within {MAX_STALL_S:.0f} s"))
        elif progress < MIN_BODY_BYTES:
            amount = f"less than {MIN_BODY_BYTES} bytes of the body came"
            self._on_stall(Problem(408, f"{amount} within {MAX_STALL_S:.0f} s"))
        else:
            self.start()
