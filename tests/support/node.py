"""JavaScript packages of the tests, installed as `tests/clients/node/package-lock.json` says."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

NODE = Path(__file__).parents[1] / "clients" / "node"
INSTALL_LIMIT_S = 120


def missing() -> str:
    """Names what is not installed; empty when nothing is missing."""
    absent = [program for program in ("node", "npm") if shutil.which(program) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def installed_packages() -> Path:
    """Returns the folder with `node_modules`. One process installs, others wait for it."""
    lock, stamp = NODE / "package-lock.json", NODE / "node_modules" / ".installed"
    with (NODE / "package.json").open() as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.stat().st_mtime < lock.stat().st_mtime:
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = subprocess.run(
                command, cwd=NODE, capture_output=True, text=True, timeout=INSTALL_LIMIT_S
            )
            assert done.returncode == 0, done.stderr
            stamp.touch()
    return NODE
