"""Interpreter settings, each by measurement.

A queue that kept 200,000 messages which came one by one, in this process: 42 us a message under the
collector's default thresholds, which stopped the broker for 400 ms at the longest, since blocks and
spans are many and form no cycles; with these 22 us and 0.2 ms. The first threshold is how long a
stop lasts: where a thousand connections were dialled, a pass over 100,000 young objects took 80 ms,
one over 10,000 took 7, one over 2,000 hardly 1, at the same cost in all. The second makes the next
generation's turn come rarely: each 25th time it was a stop of 10 to 40 ms. What exists after the
start is frozen out of every pass, and nothing is collected during it: of what 100,000 queues are
made of nothing is garbage, and the collector took more than half of the time (6.9 s, 3.0 without).

The switch interval bounds how long a thread that waits for the interpreter (the hub's database, a
password check) stands behind a busy loop: at the median 5.3 ms at the default, 0.7 ms at 0.5 ms,
0.3 ms at 0.1 ms, where the busy side was up to a fifth slower.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

GC_THRESHOLDS = (2_000, 2_500, 1_000)
SWITCH_INTERVAL_S = 0.0005


@contextmanager
def uncollected() -> Iterator[None]:
    """Looks for garbage once and then not again while everything is being set up."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def tune() -> None:
    """Call once, when everything is set up and before the first connection."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
