"""A copy of the tree in which one mutation at a time is tried."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

FOLDERS = ("app", "core", "hub", "migrations", "static", "tests", "docs")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "node_modules", "target", ".hypothesis")
FAILED = 1
"""What pytest exits with when a test has failed, or could not be collected."""
COLLECTION_FAILED = 2


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
        for folder in FOLDERS[:5]:
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

    def is_failing(self, suite: str, limit_s: float) -> bool:
        """Raises `subprocess.TimeoutExpired`, and `RuntimeError` if pytest itself goes wrong."""
        words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", suite]
        environment = {**os.environ, "PYTHONPATH": str(self._place / "site")}
        environment.pop("CI", None)
        with subprocess.Popen(
            words, cwd=self._place, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, text=True,
        ) as process:  # fmt: skip
            try:
                output, _ = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)  # with the servers that the tests have started
                raise
        if process.returncode not in (0, FAILED, COLLECTION_FAILED):
            raise RuntimeError(f"pytest ended with {process.returncode}:\n{output[-2000:]}")
        return process.returncode != 0
