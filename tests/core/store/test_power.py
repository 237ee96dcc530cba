"""Power cuts and kills at every operation: nothing confirmed is lost, nothing half is there.

`python -m tests.core.store.power` does the same for as many disks as a release wants.
"""

from __future__ import annotations

import random

import pytest

from tests.support.faulty_disk import FaultyDisk, Keep
from warrenmq.core.store.durable import DurableStore

from .power import Survey
from .workload import Workload, recover


@pytest.mark.parametrize("seed", range(3))
def test_every_power_cut_leaves_what_was_confirmed(seed: int) -> None:
    survey = Survey(seed, steps=25).run()
    assert survey.faults == []
    assert survey.images > 500


def test_500_operations_are_each_the_last() -> None:
    survey = Survey(11, steps=85, keeps=[Keep.ALL], kills=False).run()
    assert survey.faults == []
    assert survey.changes >= 500


def test_the_look_itself_sees_a_store_that_does_not_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tests.support.faulty_disk.FaultyFile.sync",
        lambda file: file._disk.operation("sync", file._name),
    )
    survey = Survey(1, steps=10, keeps=[Keep.NONE]).run()
    assert survey.faults


def test_a_stop_in_order_leaves_nothing_open() -> None:
    workload = Workload(FaultyDisk(), 5)
    workload.open()
    workload.run(60)
    workload.stop()
    assert workload.history.committed >= max(
        fact.published for fact in workload.history.facts.values()
    )
    cut = workload.disk.power_cut(Keep.NONE, random.Random(1))
    _, found = recover(cut)
    assert workload.history.faults(found) == []


def test_what_a_stopped_store_left_is_not_replayed() -> None:
    workload = Workload(FaultyDisk(), 6)
    workload.open()
    workload.run(60)
    workload.stop()
    store = DurableStore(workload.disk)
    assert not any(segment.unclean for segment in store.segments.values())
