from __future__ import annotations

import gc
import sys

from warrenmq.core.server.tuning import GC_THRESHOLDS, SWITCH_INTERVAL_S, tune, uncollected


def test_tune() -> None:
    thresholds, interval_s = gc.get_threshold(), sys.getswitchinterval()
    try:
        tune()
        assert gc.get_threshold() == GC_THRESHOLDS
        assert abs(sys.getswitchinterval() - SWITCH_INTERVAL_S) < 1e-6
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval_s)


def test_nothing_is_collected_during_a_start() -> None:
    passes: list[str] = []
    gc.callbacks.append(lambda phase, _: passes.append(phase))
    try:
        with uncollected():
            before = len(passes)
            made = [[number] for number in range(100_000)]
            assert len(passes) == before and made
        assert before and gc.isenabled()
    finally:
        gc.callbacks.pop()
