"""The Java client: one process runs every scenario of java/Scenarios.java."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .support import Broker

SOURCE = Path(__file__).with_name("java") / "Scenarios.java"
JARS = [
    Path("/usr/share/java", f"{name}.jar") for name in ("amqp-client", "slf4j-api", "slf4j-nop")
]
RUN_LIMIT_S = 60
NAMES = re.findall(r'scenarios\.put\("(.+)", ', SOURCE.read_text())

pytestmark = pytest.mark.skipif(
    shutil.which("javac") is None or not all(jar.exists() for jar in JARS),
    reason="a JDK and librabbitmq-client-java are not installed",
)


@pytest.fixture(scope="module")
def report(broker: Broker) -> dict[str, str]:
    """What each scenario said: passed, or its error."""
    classes = ":".join(map(str, JARS))
    done = subprocess.run(
        ["java", "-cp", classes, str(SOURCE), broker.url], capture_output=True, text=True,
        timeout=RUN_LIMIT_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return dict(line.split("\t") for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_scenario(report: dict[str, str], name: str) -> None:
    assert report[name] == "passed"


def test_every_scenario_ran(report: dict[str, str]) -> None:
    assert list(report) == NAMES
    assert len(NAMES) >= 10
