"""The program in docs/operations.md that shows which lines hold memory."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.process import terminate, wait_until

PAGE = Path(__file__).parents[2] / "docs/operations.md"


@pytest.mark.thorough
def test_a_traced_server_shows_its_largest_lines(tmp_path: Path) -> None:
    (program,) = (
        one
        for one in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        if "tracemalloc" in one
    )
    script, errors, output = (tmp_path / name for name in ("traced.py", "errors", "output"))
    script.write_text(program)
    options = ("--dev", "--data", tmp_path / "data", "--http-port", "0", "--amqp-port", "0")
    with errors.open("wb") as stderr, output.open("wb") as stdout:
        process = subprocess.Popen(
            [sys.executable, script, *options], cwd=tmp_path,
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
        )  # fmt: skip
        try:
            wait_until(lambda: "listening" in output.read_text(), 60, "the server listens")
            process.send_signal(signal.SIGUSR1)
            wait_until(lambda: errors.read_text().count("size=") == 20, 60, "the lines")
        finally:
            terminate(process, 60)
    assert process.returncode == 0
