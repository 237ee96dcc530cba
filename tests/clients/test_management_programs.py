"""Management clients of Go and Java, each on a server of its own: rabbit-hole (Terraform), KEDA's
requests, and RabbitMQ's http-client."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.server import WarrenServer

from .management_programs import MANAGEMENT_PROGRAMS
from .programs import BUILD_LIMIT_S, Program

RUN_LIMIT_S = 120


@pytest.mark.thorough
@pytest.mark.timeout(BUILD_LIMIT_S + 2 * RUN_LIMIT_S)
@pytest.mark.parametrize("program", MANAGEMENT_PROGRAMS, ids=lambda program: program.name)
def test_all_calls(program: Program) -> None:
    if reason := program.missing():
        pytest.skip(reason)
    command = program.build()
    with WarrenServer() as warren:
        done = subprocess.run(
            [*command, warren.http_url, warren.amqp_url],
            capture_output=True, text=True, timeout=RUN_LIMIT_S,
        )  # fmt: skip
        complaints = [line for line in warren.output().splitlines() if " ERROR " in line]
    assert (done.returncode, done.stderr, complaints) == (0, "", [])
    report = dict(line.split("\t") for line in done.stdout.splitlines())
    assert report == dict.fromkeys(program.checks, "passed")


def test_the_packages_are_those_that_the_integration_installs() -> None:
    script = (Path(__file__).parents[2] / ".ci" / "run").read_text()
    needed = {package for program in MANAGEMENT_PROGRAMS for package in program.packages}
    assert [package for package in needed if package not in script] == []
