"""The loop monitor counts late timers and collector passes."""

from __future__ import annotations

import gc

from warrenmq.core.server.loop_monitor import LoopMonitor

from .support import until


def observed(monitor: LoopMonitor) -> tuple[int, int]:
    return monitor.lag_s.cumulative()[-1], monitor.collector_s.cumulative()[-1]


async def test_late_timers_and_passes_of_the_collector_are_counted() -> None:
    monitor = LoopMonitor()
    monitor.start()
    gc.collect()
    await until(lambda: observed(monitor)[0] > 0)
    lags, passes = observed(monitor)
    monitor.stop()
    assert passes > 0
    gc.collect()
    assert observed(monitor) == (lags, passes)
