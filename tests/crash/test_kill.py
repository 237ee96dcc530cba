"""F1: the server is killed under load, in recovery too; nothing confirmed is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .killer import Killer, Options

pytestmark = pytest.mark.promise

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)
def test_kills_under_load(tmp_path: Path) -> None:
    options = Options(
        kills=5, messages=20_000, seed=1, longest_s=0.8, early=0.2, polite=0.1, drain_every=3
    )
    killer = Killer(options, tmp_path / "data")
    verdict = killer.run()
    assert verdict.valid, "\n".join(verdict.examples)
    assert verdict.confirmed >= options.messages
    assert killer.course.kills >= options.kills
    assert verdict.recovered + verdict.duplicated + verdict.unknown > 0, "no kill hit the load"


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_the_torture_run_sums_up(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.crash", "--kills", "1", "--messages", "500"]
    command += ["--seed", "1", "--longest-s", "0.3", "--data", str(tmp_path / "data")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result
    summary = json.loads(result.stdout.splitlines()[-1])
    assert summary["valid"] is True
    assert summary["lost"] == summary["unexpected"] == 0
    assert summary["confirmed"] >= 500 and summary["kills"] >= 1
