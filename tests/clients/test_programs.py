"""The clients of Java, Go and Rust: one process of each runs every scenario of scenarios.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .programs import BUILD_LIMIT_S, PROGRAMS, Program
from .scenarios import SCENARIOS
from .support import Broker

RUN_LIMIT_S = 60

pytestmark = pytest.mark.timeout(BUILD_LIMIT_S + 2 * RUN_LIMIT_S)


@pytest.fixture(
    scope="module",
    params=[
        # Its compiler takes longer than everything else here.
        pytest.param(one, id=one.name, marks=[pytest.mark.thorough] * (one.name == "rust"))
        for one in PROGRAMS
    ],
)
def command(request: pytest.FixtureRequest) -> list[str]:
    """The program, built; skipped when what it needs is not installed."""
    program: Program = request.param
    if reason := program.missing():
        pytest.skip(reason)
    return program.build()


@pytest.fixture(scope="module")
def report(command: list[str], broker: Broker) -> dict[str, str]:
    """What each scenario said: passed, or its error."""
    done = subprocess.run(
        [*command, broker.url], capture_output=True, text=True, timeout=RUN_LIMIT_S
    )
    assert (done.returncode, done.stderr) == (0, "")
    return dict(line.split("\t") for line in done.stdout.splitlines())


def test_scenarios(report: dict[str, str]) -> None:
    assert report == dict.fromkeys(SCENARIOS, "passed")


def test_missing_tools_are_named() -> None:
    jars = [Path("/nowhere/client.jar")]
    program = Program("none", ["sh", "go-of-tomorrow"], list, ["go", "client-java"], jars)
    missing = "not installed: go-of-tomorrow, /nowhere/client.jar; apt install go client-java"
    assert program.missing() == missing


def test_the_packages_are_those_that_the_integration_installs() -> None:
    script = (Path(__file__).parents[2] / ".ci" / "run").read_text()
    assert all(package in script for program in PROGRAMS for package in program.packages)
