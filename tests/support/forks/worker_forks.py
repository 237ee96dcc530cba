"""Runs, in copies of this process, the program that starts the processes of a server
(`hub/processes/main.py`); there, worker processes begin as copies, too.

It has loaded what they import and no more, for their limit of memory counts all of it. The standard
input is the socket for requests (`forks.py`).
"""

from __future__ import annotations

import gc
import os
import runpy
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from .forks import Forks, leave

WORKER = "warrenmq.hub.workers.main"
_LOADED = (
    "formats.feed_reader", "formats.lenient", "formats.selected", "formats.writing", "links.remote",
    "outputs.collecting", "outputs.rendering", "topics.broken_feed", "topics.document_reader",
    "topics.reading", "workers.functions", "workers.messages",
)  # fmt: skip


class WorkerCopy:
    """A copy of this process that runs a worker, with what is used of `subprocess.Popen`."""

    def __init__(self, arguments: Sequence[str], stdin: int, stdout: int) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if not self.pid:
            _work(arguments, stdin, stdout)

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _work(arguments: Sequence[str], stdin: int, stdout: int) -> None:
    """Gives this copy what a program finds that is started by itself, runs the worker and ends."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    sys.argv = [WORKER, *arguments]
    code = 1
    try:
        runpy.run_module(WORKER, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _start(command: Sequence[str], stdin: int, stdout: int) -> Any:
    """Starts a process, a worker as a copy."""
    if WORKER in command:
        return WorkerCopy(command[command.index(WORKER) + 1 :], stdin, stdout)
    return _Popen(command, stdin=stdin, stdout=stdout)


_Popen = subprocess.Popen


def main() -> None:
    for module in _LOADED:
        import_module(f"warrenmq.hub.{module}")
    gc.freeze()
    command = Forks(socket.socket(fileno=os.dup(0))).serve()
    if command is not None:
        subprocess.Popen = _start  # type: ignore[assignment,misc]
        runpy.run_path(command[-1], run_name="__main__")
        leave(0)


if __name__ == "__main__":
    main()
