"""Long work of the broker's thread in slices, so that no turn waits for the whole of it."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

SLICE_S = 0.001


def run_slice(steps: Iterator[object]) -> bool:
    """Takes steps for a millisecond, one at least; True if there may be more of them.

    A step is what cannot be interrupted: whoever yields says what bounds it.
    """
    until_s = perf_counter() + SLICE_S
    return any(perf_counter() > until_s for _ in steps)
