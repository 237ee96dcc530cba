"""Runs the tests and decides whether they pass: `python -m tests.gate --jobs 3 tests/core`.

Up to `FORGIVEN` tests that fail are run once more, one after the other, when everything else has
ended. Those that pass then are listed as flaky, and the run passes; their reports are kept in
`.cache/flaky`. A test marked `promise` gets no second try.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from .failures import OPTION, Failure, read, write_reports

FORGIVEN = 3
FOLDER = Path(".cache/flaky")
_FAILURES = FOLDER / "failures.json"
_SECOND = FOLDER / "second-try.txt"
_PLUGIN = "tests.gate.failures"
_IN_ORDER = ("--no-loadscope-reorder",)
"""Otherwise files with few tests come last, which are the longest ones."""


def run(options: Sequence[str]) -> int:
    """Runs pytest in a process of its own and returns its exit code."""
    return subprocess.run(_command(options), check=False).returncode


def _command(options: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", _PLUGIN, OPTION, str(_FAILURES), *options]


def compile_tests(folders: Sequence[Path]) -> None:
    """Has pytest compile the folders that it has not compiled yet, in two processes: each of those
    that run the tests would compile all of them."""
    new = [str(one) for one in folders if not (one / "__pycache__").exists()]
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-qq"]
    halves = [half for half in (new[0::2], new[1::2]) if half]
    for process in [
        subprocess.Popen([*collect, *half], stdout=subprocess.DEVNULL) for half in halves
    ]:
        process.wait()


def gets_second_try(code: int, failures: Sequence[Failure]) -> bool:
    """Whether a run that ended with `code` may still pass."""
    if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(failures) <= FORGIVEN:
        return False
    return not any(failure.is_promise for failure in failures)


def try_again(options: Sequence[str], failures: Sequence[Failure]) -> bool:
    """Whether all pass that failed, alone; what pytest prints is kept, too."""
    names = [failure.name for failure in failures]
    done = subprocess.run(
        _command(["-rA", *options, *names]),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    _SECOND.write_bytes(done.stdout)
    sys.stdout.buffer.write(done.stdout)
    sys.stdout.flush()
    return done.returncode == pytest.ExitCode.OK


def decide(options: Sequence[str], jobs: int, tests: Sequence[str]) -> int:
    """Runs the tests, twice where that may help, and returns the exit code of the gate."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    compile_tests([one for one in Path("tests").glob("*") if any(one.rglob("test_*.py"))])
    code = run([*options, "--numprocesses", str(jobs), "--dist", "loadfile", *_IN_ORDER, *tests])
    failures = read(_FAILURES)
    write_reports(failures, FOLDER)
    if not gets_second_try(code, failures):
        return code
    print(f"\n{len(failures)} failed; each is tried once more, alone", flush=True)
    if not try_again(options, failures):
        return code
    print(f"\n=== flaky: passed at the second try; the reports are in {FOLDER} ===")
    for failure in failures:
        print(f"flaky: {failure.name}")
    return pytest.ExitCode.OK


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gate", description=__doc__)
    parser.add_argument("--jobs", type=int, default=3, help="files of tests at a time")
    parser.add_argument("-m", default="not thorough", help="which tests, by their markers")
    parser.add_argument("tests", nargs="*", default=["tests"], help="files and folders")
    chosen = parser.parse_args()
    return decide(["-m", chosen.m], chosen.jobs, chosen.tests)


if __name__ == "__main__":
    sys.exit(main())
