"""Child processes that are waited for with a bound and ended by their own pid."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from .forks import ForkedProcess

AnyProcess = subprocess.Popen[bytes] | ForkedProcess

POLL_S = 0.02
EVIDENCE_TIMEOUT_S = 30.0
EVIDENCE_CHARS = 20_000


def wait_until(done: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Polls until `done()`; raises `TimeoutError` naming `what` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen within {timeout_s} s")
        time.sleep(POLL_S)


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def waited_seconds(pid: int) -> float:
    """Returns how long the threads that a process has now waited for a processor (Linux)."""
    waited_ns = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # it has ended meanwhile
            waited_ns += int((task / "schedstat").read_text().split()[1])
    return waited_ns / 1e9


def terminate(
    process: AnyProcess,
    timeout_s: float,
    output: Callable[[], str] = str,
) -> int:
    """Sends SIGTERM and gives the exit code; raises `TimeoutError` after killing a deaf one.

    The error has the end of its `output`: with `PYTHONFAULTHANDLER` in its environment, the stacks
    of all its threads too.
    """
    process.terminate()
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        with suppress(subprocess.TimeoutExpired):  # even that is not heard by a stopped one
            process.send_signal(signal.SIGABRT)
            process.wait(EVIDENCE_TIMEOUT_S)
        kill(process)
        told = output()[-EVIDENCE_CHARS:]
        raise TimeoutError(f"{process.args!r} ignored SIGTERM for {timeout_s} s\n{told}") from None


def kill(process: AnyProcess) -> None:
    """Sends SIGKILL and reaps the process."""
    process.kill()
    process.wait()


class Server(ABC):
    """Started on entry, and stopped on exit or when it does not start."""

    @abstractmethod
    def start(self) -> None:
        """Returns when it serves."""

    @abstractmethod
    def stop(self) -> None:
        """Ends what runs of it, and removes its data."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
