from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from weakref import ref

import pytest

from warrenmq.core.server import tuning
from warrenmq.core.server.tuning import (
    FEW_BLOCKS,
    GC_THRESHOLDS,
    collect_old,
    tune,
    uncollected,
)


class Node:
    """Part of a cycle with itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def tuned() -> Iterator[None]:
    thresholds, interval_s = gc.get_threshold(), sys.getswitchinterval()
    try:
        tune()
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval_s)


def test_a_collection_examines_a_bounded_number_of_objects() -> None:
    kept: list[list[object]] = []
    most = 0
    for _ in range(50):
        kept += [[] for _ in range(5_000)]
        most = max(most, len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1)))
    assert most < 2 * GC_THRESHOLDS[0] * GC_THRESHOLDS[1]
    assert len(gc.get_objects(generation=2)) > len(kept) - most


def old_cycle() -> ref[Node]:
    """A cycle that nobody has any more, and that passes over the young do not look at."""
    node = Node()
    gc.collect(1)
    return ref(node)


def test_old_cycles_are_freed() -> None:
    found = old_cycle()
    assert found() is not None
    assert collect_old() and found() is None


def test_many_new_objects_are_frozen() -> None:
    many = [[number] for number in range(FEW_BLOCKS)]
    gc.collect(1)
    assert not collect_old()
    assert gc.get_freeze_count() > len(many)
    found = old_cycle()
    assert collect_old() and found() is None


def test_a_slow_collection_freezes(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [[number] for number in range(1_000)]
    monkeypatch.setattr(tuning, "COLLECT_MAX_S", -1.0)
    gc.collect(1)
    frozen = gc.get_freeze_count()
    assert collect_old()
    assert gc.get_freeze_count() >= frozen + len(many)


def test_uncollected() -> None:
    passes: list[str] = []
    gc.callbacks.append(lambda phase, _: passes.append(phase))
    try:
        with uncollected():
            before = len(passes)
            made = [[number] for number in range(100_000)]
            assert len(passes) == before and made
        assert gc.isenabled()
    finally:
        gc.callbacks.pop()
