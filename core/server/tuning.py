"""Interpreter settings, each by measurement.

A pass of the collector stops the broker for 0.2 us an object, and a backlog has three or four
objects for each message that came alone. None of them is part of a cycle, so most passes over them
are for nothing. What is young is looked at each 2,000 objects (more came to 80 ms where a thousand
connections were dialled) and once again each 10,000, which takes 3 ms for messages and up to 8 for
queues; with one pass over all each five million objects a backlog of a million messages stopped the
broker for 890 ms.

Long-lived objects of the broker are freed without the collector when they end. For cycles that
others leave (a connection of the HTTP server) `collect_old` is called each second: it looks at all
that is not frozen, and freezes what there is when that would take longer than 10 ms. Cycles that
nobody has any more at that moment are never freed; they are those of the last second, once for each
100,000 blocks of memory by which the process has grown.

What was there at the start is frozen out of every pass, and nothing is collected during it: of what
100,000 queues are made of nothing is garbage, and the collector took more than half of the time
(6.9 s, 3.0 without).

The switch interval bounds how long a thread that waits for the interpreter (the hub's database, a
password check) stands behind a busy loop: at the median 5.3 ms at the default, 0.7 ms at 0.5 ms,
0.3 ms at 0.1 ms, where the busy side was up to a fifth slower.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time

_NEVER = 2**31 - 1
GC_THRESHOLDS = (2_000, 4, _NEVER)
FEW_BLOCKS = 100_000
"""Of memory, allocated since the last freeze: a half or third of them are objects that can be part
of a cycle, and looking at these takes up to 10 ms."""
COLLECT_MAX_S = 0.005
SWITCH_INTERVAL_S = 0.0005

_blocks_when_frozen = 0
_passes_then = 0


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
    _freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_INTERVAL_S)


def collect_old() -> bool:
    """Frees cycles that survived earlier passes, if that takes 10 ms at most, or else freezes all
    that exists; True if it collected."""
    global _blocks_when_frozen, _passes_then
    passes, blocks = gc.get_stats()[1]["collections"], sys.getallocatedblocks()
    _blocks_when_frozen = min(_blocks_when_frozen, blocks)
    if passes == _passes_then:
        return False
    _passes_then = passes
    if blocks - _blocks_when_frozen > FEW_BLOCKS:
        gc.collect(1)
        _freeze()
        return False
    start_s = thread_time()
    gc.collect()
    if thread_time() - start_s > COLLECT_MAX_S:
        _freeze()  # More is new than the blocks say: as many that were frozen have been freed.
    return True


def _freeze() -> None:
    global _blocks_when_frozen
    gc.freeze()
    _blocks_when_frozen = sys.getallocatedblocks()
