"""warren.js and compat.js in Node: one process runs node/module.js. Their types and package."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.server import WarrenServer
from warrenmq.app.routes.browser_files import MODULES
from warrenmq.core import VERSION

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("node") / "module.js"
SOURCE = PROGRAM.read_text()
NAMES = re.findall(r"^  async '(.+)'\(", SOURCE, re.MULTILINE)
RUN_LIMIT_S = 110
MAX_BYTES = 10_000
"""Compressed by gzip, as it stands."""


@pytest.fixture(
    scope="module",
    params=[
        "--experimental-websocket",
        pytest.param("--no-experimental-websocket", marks=pytest.mark.thorough),
    ],
)
def report(warren: WarrenServer, request: pytest.FixtureRequest) -> dict[str, str]:
    """What each scenario said, with WebSockets and with polls: passed, or its error."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    done = subprocess.run(
        ["node", request.param, str(PROGRAM), f"{warren.http_url}/"],
        capture_output=True, text=True, timeout=RUN_LIMIT_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "Traceback" not in warren.output()
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_scenarios(report: dict[str, str]) -> None:
    assert report == dict.fromkeys(NAMES, "passed")


def test_the_module_is_small() -> None:
    assert len(gzip.compress((MODULES / "warren.js").read_bytes())) < MAX_BYTES


def test_types_name_what_the_module_exports() -> None:
    pattern = r"export (?:declare )?(?:async )?(?:function\*?|class) (\w+)"
    exported = [
        set(re.findall(pattern, (MODULES / file).read_text()))
        for file in ("warren.js", "warren.d.ts")
    ]
    assert exported[0] == exported[1] == {"WarrenError", "serve", "subscribe", "publish", "stream"}


def test_the_package_has_its_files_and_the_version() -> None:
    package = json.loads((MODULES / "package.json").read_text())
    assert package["version"] == VERSION
    assert {*package["files"], "package.json"} == {file.name for file in MODULES.iterdir()}
    assert (MODULES / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
