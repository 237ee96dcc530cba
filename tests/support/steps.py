"""A clock for sliced work that counts steps, so that tests need not look at time."""

from __future__ import annotations

from itertools import count
from threading import get_ident
from typing import Any

import pytest

from warrenmq.core import slices
from warrenmq.core.store.reader import Reader

STEPS_A_SLICE = 100
STEPS_A_TURN = slices.SLICES_A_TURN * STEPS_A_SLICE


def count_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock, one for every step, takes the hundredth part of a slice."""
    looks = count()
    monkeypatch.setattr(slices, "SHORT_STEPS", 1)
    monkeypatch.setattr(slices, "perf_counter", lambda: float(next(looks)))
    monkeypatch.setattr(slices, "SLICE_S", STEPS_A_SLICE)


def reads_here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Notes the segments of which something is read, or an index looked up, by this thread."""
    here: list[int] = []
    broker = get_ident()
    for name in ("read", "index"):
        plain = getattr(Reader, name)

        def noting(self: Reader, segment: int, *rest: int, plain: Any = plain) -> Any:
            if get_ident() == broker:
                here.append(segment)
            return plain(self, segment, *rest)

        monkeypatch.setattr(Reader, name, noting)
    return here
