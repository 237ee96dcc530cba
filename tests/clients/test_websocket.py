"""AMQP over WebSocket with LavinMQ's JavaScript client: one process runs node/websocket.js."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.server import WarrenServer

HERE = Path(__file__).with_name("node")
RUN_LIMIT_S = 60
NAMES = re.findall(r"^  async '(.+)'\(", (HERE / "websocket.js").read_text(), re.MULTILINE)


@pytest.fixture(scope="module", params=["/", "/ws/amqp"])
def report(
    request: pytest.FixtureRequest, warren: WarrenServer, node_folder: Path
) -> dict[str, str]:
    """What each scenario said: passed, or its error."""
    url = f"ws://{warren.host}:{warren.http_port}{request.param}"
    done = subprocess.run(
        ["node", "websocket.js", url], cwd=node_folder, capture_output=True, text=True,
        timeout=RUN_LIMIT_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "Traceback" not in warren.output()
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_scenarios(report: dict[str, str]) -> None:
    assert report == dict.fromkeys(NAMES, "passed")
