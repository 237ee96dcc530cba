"""The blocks of docs/browser.md, in their order, do what it says, with Node as the browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.server import WarrenServer

DOCUMENT = (Path(__file__).parents[2] / "docs" / "browser.md").read_text()
BLOCKS = re.compile(
    r"^```(sh|js)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
COMMANDS = {"sh": ["bash", "-euc"], "js": ["node", "--input-type=module", "-e"]}
LIMIT_S = 30


def test_walk_through(warren: WarrenServer, tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    port = str(warren.http_port)
    for found in BLOCKS.finditer(DOCUMENT):
        fence, text, shown = found.groups()
        done = subprocess.run(
            [*COMMANDS[fence], text.replace("15672", port)],
            cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S,
        )  # fmt: skip
        line = DOCUMENT.count("\n", 0, found.start()) + 1
        assert done.returncode == 0, f"docs/browser.md, line {line}: {done.stderr}"
        assert done.stdout == (shown or ""), f"docs/browser.md, line {line}"
