"""Programs that start another one with other arguments or another environment than Spark does."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import stat
import sys
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

_ZIPPED: Final = ("pyspark", "py4j")
"""Packages that Spark puts in front of all others in the form of zip files."""
_DAEMON: Final = f"{__package__}.daemon"
_PYTHON: Final = """\
#!/bin/sh
# Python would compile what it imports of Spark's zip files at each start, and Spark's own daemon
# would print a traceback for each process that Spark needs no longer.
set -f; IFS=:; kept=
for place in $PYTHONPATH; do case "$place" in
    */python/lib/pyspark.zip | */python/lib/py4j-*.zip) ;;
    *) kept="$kept${{kept:+:}}$place" ;;
esac; done
export PYTHONPATH="$kept"
case "$1 $2" in "-m pyspark.daemon") shift 2; set -- -m {} "$@" ;; esac
exec "{}" "$@"
"""


def write_launcher(launcher: Path, script: str) -> Path:
    """Writes a shell script that can be run; another process may run it meanwhile."""
    launcher.parent.mkdir(parents=True, exist_ok=True)
    written = launcher.with_name(f"{launcher.name}.{os.getpid()}")
    written.write_text(script)
    written.chmod(written.stat().st_mode | stat.S_IXUSR)
    written.rename(launcher)
    return launcher


def worker_python(cache: Path) -> str:
    """Returns what Spark starts as Python on this machine: this interpreter, by a launcher below
    `cache` that leaves out Spark's zip files and starts `daemon.py`, if their packages are
    installed too and programs can be run there.

    Python compiles what it imports of a zip file at each start: 1.2 to 1.5 s of a processor for
    each process, 0.25 to 0.5 s without, and Spark gives up a process that is not there in 10 s.
    """
    if not all(map(_is_installed, _ZIPPED)):
        return sys.executable
    interpreter = hashlib.sha256(sys.executable.encode()).hexdigest()[:16]
    launcher = cache / "python" / interpreter / "python"
    try:
        write_launcher(launcher, _PYTHON.format(_DAEMON, sys.executable))
    except OSError as error:
        logger.warning("Spark's Python starts slowly: %s can't be written: %s", launcher, error)
        return sys.executable
    if not os.access(launcher, os.X_OK):
        logger.warning("Spark's Python starts slowly: programs in %s can't be run", cache)
        return sys.executable
    return str(launcher)


def _is_installed(package: str) -> bool:
    """Whether it is imported from files."""
    found = importlib.util.find_spec(package)
    return found is not None and found.origin is not None and Path(found.origin).is_file()
