"""Measures delays of the event loop: late timers, and passes of the garbage collector, during
which nothing else runs."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping
from time import perf_counter
from typing import Final

from ..histogram import Histogram

PERIOD_S: Final = 0.1
BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class LoopMonitor:
    """Counts from `start` to `stop`; `uptime_s` counts from its making on."""

    def __init__(self) -> None:
        self.lag_s = Histogram(BOUNDS_S)
        """How late a timer came, ten times a second."""
        self.collector_s = Histogram(BOUNDS_S)
        """How long a pass of the collector took."""
        self._began_s = perf_counter()
        self._due_s = self._pass_began_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def uptime_s(self) -> float:
        return perf_counter() - self._began_s

    def start(self) -> None:
        gc.callbacks.append(self._note_pass)
        self._plan()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            gc.callbacks.remove(self._note_pass)

    def _plan(self) -> None:
        self._due_s = perf_counter() + PERIOD_S
        self._timer = asyncio.get_running_loop().call_later(PERIOD_S, self._look)

    def _look(self) -> None:
        self.lag_s.observe(max(0.0, perf_counter() - self._due_s))
        self._plan()

    def _note_pass(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "start":
            self._pass_began_s = perf_counter()
        else:
            self.collector_s.observe(perf_counter() - self._pass_began_s)
