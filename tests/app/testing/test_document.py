"""The blocks of docs/testing.md do what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[3] / "docs" / "testing.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
LIMIT_S = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has the files of the document, named by the first line of each."""
    found = tmp_path_factory.mktemp("document")
    for _, text in BLOCKS:
        first, _, rest = text.partition("\n")
        if first.startswith("# "):
            (found / first.removeprefix("# ")).write_text(rest)
    return found


def run(folder: Path, *command: str, code: int = 0) -> str:
    """Runs a command with the plugins of the document alone; returns its output."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def pytest_of(*plugins: str) -> list[str]:
    names = ("warrenmq.app.testing.plugin", *plugins)
    return [sys.executable, "-m", "pytest", "-q", *(f"-p{name}" for name in names)]


def test_the_tests_of_all_clients_pass(folder: Path) -> None:
    assert "4 passed" in run(folder, *pytest_of("pytest_asyncio.plugin", "xdist"), "-n", "2")


def test_the_program(folder: Path) -> None:
    one, other = run(folder, sys.executable, "program.py").splitlines()
    assert re.fullmatch(
        r"amqp://guest:guest@127.0.0.1:\d+/%2F http://127.0.0.1:\d+", one
    ) and re.fullmatch(r"amqp://guest:guest@127.0.0.1:\d+/test-\w+", other)


def test_the_command(folder: Path) -> None:
    (line,) = [text for kind, text in BLOCKS if kind == "sh"]
    url, head, row, *_ = run(folder, "sh", "-c", line).splitlines()
    assert url.startswith("amqp://") and head.startswith("NAME") and row.startswith("/ ")
    run(folder, "warren", "run", "--", "sh", "-c", "exit 7", code=7)
