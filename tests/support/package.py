"""Builds the distributions of the project."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPARK_MODULE = "pyspark_warren.py"
"""It stands beside `warrenmq`, where Spark looks for it."""
FOLDERS = ("app", "core", "docs", "hub", "migrations", "static")
_FILES = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", SPARK_MODULE)
_TIMEOUT_S = 100


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_wheel(directory: Path) -> Path:
    """Returns a wheel, built of a source distribution, which is built of a copy, so that leftovers
    of earlier builds can't get in."""
    tree = directory / "tree"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in _FILES:
        shutil.copy(ROOT / file, tree)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, tree, cwd=tree)
    return next(directory.glob("warrenmq-*.whl"))
