"""A soak of some seconds: the same load and the same look at it, with both kinds of restart."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.client import Address
from tests.crash.site import Site

from .hub import Webhooks
from .run import Options, Soak
from .target import NEWS, SIGNED, Target

ROOT = Path(__file__).parents[2]


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_three_rounds_with_both_restarts(tmp_path: Path) -> None:
    options = Options(
        rounds=3, load_s=1.0, settle_s=0.2, rest_s=0.5, seed=1, rate=1_000.0, rounds_a_life=1
    )
    told: list[str] = []
    soak = Soak(options, tmp_path / "data", told.append)
    verdict = soak.run()
    assert verdict.valid, "\n".join(verdict.examples)
    assert verdict.confirmed > 0
    course = soak.course
    assert [len(course.samples), len(course.rests)] == [3, 3]
    assert [one.life for one in course.samples] == [1, 2, 3]
    assert all(one.answers for one in course.latencies)
    signals = [line.partition(":")[0] for line in told if line.startswith("SIG")]
    assert signals == ["SIGTERM", "SIGKILL"]
    assert all(rounds > 0 for rounds in soak.rounds_of_clients().values())


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_a_broken_bound_is_said_and_exits_with_1(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.soak", "--seconds", "4", "--rate", "200"]
    command += ["--seed", "1", "--stall-ms", "0", "--data", str(tmp_path / "data")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    *_, last = lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    assert [line for line in lines if line.startswith("stall_ms: ")]
    figures = json.loads(last)
    assert (figures["valid"], figures["seed"], figures["rounds"], figures["lost"]) == (
        False, 1, 2, 0,
    )  # fmt: skip


def test_a_message_is_owed_until_both_callbacks_have_taken_it() -> None:
    target = Target()
    webhooks = Webhooks(Site(Address("127.0.0.1", 0)), target, seed=1)
    webhooks.owed = {7, 20}
    target.arrived[NEWS].update([7, 20])
    target.arrived[SIGNED].update([7, 20])
    assert webhooks.owing(), "20 was refused the first time that it came to the first callback"
    assert webhooks.owed == {20}
    target.arrived[NEWS].update([20])
    assert not webhooks.owing()
