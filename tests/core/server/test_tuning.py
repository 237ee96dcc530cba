from __future__ import annotations

import gc
import sys

from warrenmq.core.server.tuning import GC_THRESHOLDS, SWITCH_INTERVAL_S, tune


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
