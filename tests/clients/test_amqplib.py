"""amqplib, the client of Node: one process runs every scenario of node/scenarios.js."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from .support import Broker

HERE = Path(__file__).with_name("node")
RUN_LIMIT_S = 60
NAMES = re.findall(r"^  async '(.+)'\(", (HERE / "scenarios.js").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def report(broker: Broker, node_folder: Path) -> dict[str, str]:
    """What each scenario said: passed, or its error."""
    done = subprocess.run(
        ["node", "run.js", broker.url], cwd=node_folder, capture_output=True, text=True,
        timeout=RUN_LIMIT_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_scenarios(report: dict[str, str]) -> None:
    assert report == dict.fromkeys(NAMES, "passed")
