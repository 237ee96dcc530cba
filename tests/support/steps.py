"""A clock for sliced work that counts steps, so that tests need not look at time."""

from __future__ import annotations

from itertools import count

import pytest

from warrenmq.core import slices

STEPS_A_SLICE = 100
STEPS_A_TURN = slices.SLICES_A_TURN * STEPS_A_SLICE


def count_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock, one for every step, takes the hundredth part of a slice."""
    looks = count()
    monkeypatch.setattr(slices, "SHORT_STEPS", 1)
    monkeypatch.setattr(slices, "perf_counter", lambda: float(next(looks)))
    monkeypatch.setattr(slices, "SLICE_S", STEPS_A_SLICE)
