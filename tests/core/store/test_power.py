"""Power cuts and kills at every operation: nothing confirmed is lost.

`python -m tests.core.store.power` does the same for as many disks as a release wants.
"""

from __future__ import annotations

import random

import pytest

from tests.support.faulty_disk import FaultyDisk, Keep

from .power import Survey
from .workload import Workload, recover


@pytest.mark.parametrize("seed", range(2))
def test_confirmed_messages_survive_every_power_cut(seed: int) -> None:
    survey = Survey(seed, steps=25).run()
    assert survey.faults == []
    assert survey.images > 500


def test_a_kill_at_each_of_500_operations_loses_nothing() -> None:
    survey = Survey(11, steps=85, keeps=[Keep.ALL], kills=False).run()
    assert survey.faults == []
    assert survey.changes >= 500


def test_the_survey_finds_a_store_that_does_not_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.faulty_disk.FaultyFile.sync", lambda file: None)
    survey = Survey(1, steps=10, keeps=[Keep.NONE]).run()
    assert survey.faults


def test_a_clean_stop_confirms_everything() -> None:
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
