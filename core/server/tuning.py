"""Interpreter settings: garbage collection and the switch interval, both chosen by measurement.

A pass of the collector stops the broker for 0.2 us an object, and a backlog has three or four
objects for each message that came alone. None of them is part of a cycle, so most passes over them
find nothing. Young objects are examined every 2,000 allocations (with more, a thousand new
connections took 80 ms) and once again every 10,000, which takes 3 ms for messages and up to 8 for
queues. A full pass every five million objects stopped the broker for 890 ms with a backlog of a
million messages.

The broker's own long-lived objects are freed without the collector when they end. For cycles that
others leave (a connection of the HTTP server) `collect_old` is called each second: it examines all
that is not frozen, and freezes it when that would take longer than 10 ms. Garbage cycles of that
moment are never freed: those of the last second, once for each 100,000 blocks of memory by which
the process has grown.

What exists after the start is frozen, and nothing is collected during the start, imports included:
the objects of 100,000 queues contain no garbage, and the collector took more than half of the time
(6.9 s, 3.0 without); of the 64,000 objects of the modules 709 are garbage, and the passes took a
fifth of the time of an empty server's start.

The switch interval bounds how long a thread (the hub's database, a password check) waits for the
interpreter beside a busy loop: at the median 5.3 ms at the default, 0.7 ms at 0.5 ms, 0.3 ms at
0.1 ms, where the busy side was up to a fifth slower.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time
from typing import Final

_NEVER: Final = 2**31 - 1
GC_THRESHOLDS: Final = (2_000, 4, _NEVER)
FEW_BLOCKS: Final = 100_000
"""Memory blocks allocated since the last freeze; examining the third or half of them that can be
part of a cycle takes up to 10 ms."""
COLLECT_MAX_S: Final = 0.005
SWITCH_INTERVAL_S: Final = 0.0005

_blocks_when_frozen = 0
_passes_then = 0


@contextmanager
def uncollected() -> Iterator[None]:
    """Collects no garbage while everything is set up: there is next to none."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def tune() -> None:
    """Tunes the interpreter; called once, after the setup and before the first connection."""
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
        _freeze()  # More is new than the blocks say: frozen ones have been freed.
    return True


def _freeze() -> None:
    global _blocks_when_frozen
    gc.freeze()
    _blocks_when_frozen = sys.getallocatedblocks()
