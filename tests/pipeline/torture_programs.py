"""Programs that `make torture-pipeline` kills: drivers of Spark with all that they have started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path


class Program:
    """A driver, which is started again whenever it has ended. `once` are the arguments with which
    it ends where the stream does, in the place of `on`."""

    def __init__(
        self, command: Sequence[str], on: Sequence[str], once: Sequence[str], log: Path
    ) -> None:
        self._command, self._on, self._once = command, on, once
        self._log = log.open("ab")
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def keep_running(self) -> None:
        if self._process is None or self._process.poll() is not None:
            self._start(self._on)

    def run_once(self) -> int:
        """Returns the exit code."""
        self.kill()
        return self._start(self._once).wait()

    def _start(self, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [*self._command, *arguments], stdout=self._log, stderr=self._log
        )
        self.starts += 1
        return self._process

    def kill(self) -> bool:
        """Kills driver, Java and workers; returns whether the driver was there."""
        if self._process is None or self._process.poll() is not None:
            return False
        kill([self._process.pid, *_descendants(self._process.pid)])
        self._process.wait()
        return True

    def kill_workers(self) -> bool:
        """Kills the Python processes of tasks; returns whether there were any."""
        below = [] if self._process is None else _descendants(self._process.pid)
        workers = [pid for pid in below if _is_worker(pid)]
        kill(workers)
        return bool(workers)


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    """Returns the processes that a process has started, and these have, nearest first."""
    found: list[int] = []
    for task in Path("/proc").glob(f"{pid}/task/*/children"):
        with suppress(OSError):  # it has ended meanwhile
            found += map(int, task.read_text().split())
    return found + [below for child in found for below in _descendants(child)]


def _is_worker(pid: int) -> bool:
    """Whether a process runs Spark's Python; its JVM, which has that in its arguments, does not."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b"python" in words[0] and any(word.endswith(b".daemon") for word in words)
    return False
