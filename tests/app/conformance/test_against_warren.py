"""Warren passes: `warren conformance` against a real server, as anybody would run it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import WarrenServer, warren_command

RUN_TIMEOUT_S = 110
WAITS = {131, 132}
"""For leases to end."""
ASKS = {140, 141, 142}
"""Decided where the hub asks publishers (`hub_check_topics`)."""


def run(server: WarrenServer, report: Path, *arguments: str) -> dict[int, Any]:
    """The checks by number; fails unless the exit code is 0."""
    command = [*warren_command(), "conformance", "--hub", f"{server.http_url}/hub"]
    done = subprocess.run(
        [*command, "--json", str(report), *arguments],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {check["number"]: check for check in json.loads(report.read_text())["checks"]}


@pytest.mark.timeout(RUN_TIMEOUT_S + 10)
def test_every_check_is_passed(tmp_path: Path) -> None:
    with WarrenServer() as server:
        checks = run(server, tmp_path / "report.json")
    undecided = {number for number, check in checks.items() if check["verdict"] == "skip"}
    failed = [check for check in checks.values() if check["verdict"] == "fail"]
    assert failed == []
    assert undecided == WAITS | ASKS


@pytest.mark.timeout(RUN_TIMEOUT_S + 10)
def test_leases_and_denials(tmp_path: Path) -> None:
    numbers = ",".join(map(str, sorted(WAITS | ASKS)))
    with WarrenServer(args=["--hub-check-topics"]) as server:
        checks = run(server, tmp_path / "report.json", "--slow", "--only", numbers)
    assert {number: check["verdict"] for number, check in checks.items()} == dict.fromkeys(
        WAITS | ASKS, "pass"
    )
