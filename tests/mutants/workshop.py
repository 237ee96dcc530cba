"""A copy of the tree in which one mutation at a time is tried."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from .traced_lines import VARIABLE

FOLDERS = ("app", "core", "docs", "hub", "migrations", "static", "tests")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "node_modules", "target", ".hypothesis")
FAILED = 1
"""What pytest exits with when a test has failed, or could not be collected."""
COLLECTION_FAILED = 2
CONFTEST_FAILED = 4
"""It exits so for wrong arguments too."""


class Workshop:
    """Tests in the copy import the copy: `warrenmq` is laid out there as links."""

    def __init__(self, root: Path, place: Path) -> None:
        self._place = place
        for folder in FOLDERS:
            shutil.copytree(root / folder, place / folder, ignore=LEFT_OUT, symlinks=True)
        for file in root.iterdir():
            if file.is_file():
                shutil.copy(file, place)
        package = place / "site" / "warrenmq"
        package.mkdir(parents=True)
        for folder in FOLDERS[:-1]:
            (package / folder).symlink_to(place / folder)
        for file in (place / "app" / "package").glob("*.py"):
            (package / file.name).symlink_to(file)
        self._changes = 0

    def put(self, module: str, text: str) -> None:
        """Writes the module. Its time differs from that of any earlier text, by which compiled
        modules are known."""
        path = self._place / module
        path.write_text(text)
        self._changes += 1
        at = int(time.time()) - 1_000_000 + self._changes
        os.utime(path, (at, at))

    def is_failing(self, paths: list[str], limit_s: float) -> bool:
        """Raises `subprocess.TimeoutExpired`, and `RuntimeError` if pytest itself goes wrong."""
        tests = self._place / "tests.txt"
        tests.write_text("\n".join(paths))
        with self._pytest("-x", f"@{tests}") as process:
            try:
                output, _ = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)  # with the servers that the tests have started
                raise
        if process.returncode == CONFTEST_FAILED and "while loading conftest" in output:
            return True
        if process.returncode not in (0, FAILED, COLLECTION_FAILED):
            raise RuntimeError(f"pytest ended with {process.returncode}:\n{output[-2000:]}")
        return process.returncode != 0

    def trace(self, paths: list[str], file: Path) -> None:
        """Runs tests with nothing broken and records in `file` which lines each of them runs."""
        words = "-p", "tests.mutants.traced_lines", *paths
        with self._pytest(*words, **{VARIABLE: str(file.resolve())}) as process:
            process.communicate()

    def _pytest(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(self._place / "site"), **variables}
        environment.pop("CI", None)
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
            cwd=self._place, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, text=True,
        )  # fmt: skip
