"""A clock for sliced work that counts steps, so that tests need not look at time."""

from __future__ import annotations

from collections import Counter
from itertools import count
from threading import get_ident
from typing import Any

import pytest

from warrenmq.core import slices
from warrenmq.core.clock import ManualClock, SystemClock
from warrenmq.core.store.reader import RecordReader

STEPS_A_SLICE = 100
STEPS_A_TURN = slices.SLICES_A_TURN * STEPS_A_SLICE


def count_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock, one for every step, takes the hundredth part of a slice."""
    looks = count()
    monkeypatch.setattr(slices, "SHORT_STEPS", 1)
    for clock in (ManualClock, SystemClock):
        monkeypatch.setattr(clock, "work_s", lambda *_: float(next(looks)))
    monkeypatch.setattr(slices, "SLICE_S", STEPS_A_SLICE)


def count_calls(monkeypatch: pytest.MonkeyPatch, *functions: tuple[Any, str]) -> Counter[str]:
    """Counts by name how often these are called: each the class or module, and the name there."""
    counted: Counter[str] = Counter()
    for owner, name in functions:
        plain = getattr(owner, name)

        def counting(*given: Any, name: str = name, plain: Any = plain, **named: Any) -> Any:
            counted[name] += 1
            return plain(*given, **named)

        monkeypatch.setattr(owner, name, counting)
    return counted


def reads_here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Notes the segments of which something is read, or an index looked up, by this thread."""
    here: list[int] = []
    broker = get_ident()
    for name in ("read", "index"):
        plain = getattr(RecordReader, name)

        def noting(self: RecordReader, segment: int, *rest: int, plain: Any = plain) -> Any:
            if get_ident() == broker:
                here.append(segment)
            return plain(self, segment, *rest)

        monkeypatch.setattr(RecordReader, name, noting)
    return here
