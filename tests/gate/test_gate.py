"""`python -m tests.gate` with small suites whose tests fail once, twice, or too often."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
FAILS_ONCE = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({many}))
{mark}
def test_now_and_then(number, request):
    seen = Path(__file__).with_name(f"seen-{{number}}")
    print("said by the test")
    was_there = seen.exists()
    seen.touch()
    assert was_there
"""
ONLY_XDIST = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
PROMISE = "@pytest.mark.promise"


def gate(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_small.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "tests.gate", "--jobs", "1", "test_small.py"],
        cwd=folder,
        # Other plugins take a second to load, each time.
        env={**os.environ, "PYTHONPATH": str(HOUSE), **ONLY_XDIST},
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_a_few_that_pass_at_the_second_try_are_listed(tmp_path: Path) -> None:
    done = gate(tmp_path, FAILS_ONCE.format(many=3, mark=""))
    assert done.returncode == 0, done.stdout
    listed = [line for line in done.stdout.splitlines() if line.startswith("flaky: ")]
    assert listed == [f"flaky: test_small.py::test_now_and_then[{n}]" for n in range(3)]
    kept = tmp_path / ".cache/flaky"
    assert "said by the test" in (kept / "first-3.txt").read_text()
    assert "3 passed" in (kept / "second-try.txt").read_text()


@pytest.mark.parametrize(
    "text",
    [
        FAILS_ONCE.format(many=4, mark=""),
        FAILS_ONCE.format(many=1, mark=PROMISE),
        "def test_always_fails():\n    assert False",
        "import no_such_module",
    ],
    ids=["too many", "promise", "fails twice", "not collected"],
)
def test_what_is_not_forgiven_fails_the_gate(tmp_path: Path, text: str) -> None:
    done = gate(tmp_path, text)
    assert done.returncode not in (0, 5), done.stdout
    assert "flaky: " not in done.stdout
