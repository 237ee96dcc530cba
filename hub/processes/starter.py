"""Starts child processes by a process of its own.

A process that the event loop starts halts it until the new program runs, which takes seconds on a
busy machine; in a thread it is the same, since the interpreter's lock is held. So a small process
(`main.py`) is started with the server, before it has clients, and starts the others.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from .child import ChildProcess
from .pipes import make_pipe

logger = logging.getLogger(__name__)

_PROGRAM: Final = Path(__file__).with_name("main.py")
_SECRET: Final = "WARREN_"
"""The prefix of settings, which may have passwords; processes do not inherit them."""


class ProcessStarter:
    """Starts processes that inherit no socket and no setting, and end with this one.

    Used with `with` it is ready at once, otherwise with the first process.
    """

    def __init__(self) -> None:
        self._opened: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The id of the process that starts the others, their parent."""
        return self._open()[0].pid

    async def start(self, module: str, *arguments: str) -> ChildProcess:
        """Starts a Python program with pipes as its standard input and output.

        Raises `OSError`. Whoever starts a process has to wait for its end, or to kill it.
        """
        requests = self._open()[1]
        # -P: modules of the current directory must not replace any of ours.
        command = (sys.executable, "-P", "-m", module, *arguments)
        child = ChildProcess()
        try:
            with ExitStack() as theirs:
                descriptors = await _connect(child, command, theirs)
                socket.send_fds(requests, [b"\n"], descriptors)
            await child.started()
        except BaseException:
            child.kill()
            raise
        return child

    def close(self) -> None:
        """Ends the process that starts others, and with it those that are left."""
        if self._opened is not None:
            process, requests = self._opened
            self._opened = None
            requests.close()
            process.wait()

    def _open(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        """Returns the process that starts others; starts it, also again if it was killed."""
        if self._opened is not None and self._opened[0].poll() is not None:
            logger.warning("the process that starts others was killed; it is started again")
            self.close()
        if self._opened is None:
            self._opened = _start_program()
        return self._opened


def _start_program() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Starts the program; returns its process, and the socket for requests."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(_SECRET)
    }
    requests, theirs = socket.socketpair()
    requests.setblocking(False)
    with theirs:
        # -I -S: it needs no packages.
        command = (sys.executable, "-I", "-S", str(_PROGRAM))
        return subprocess.Popen(command, stdin=theirs.fileno(), env=environment), requests


async def _connect(
    child: ChildProcess, command: tuple[str, ...], theirs: ExitStack
) -> tuple[int, int, int]:
    """Connects this side of a process; returns the descriptors of the other, to be closed when they
    are handed over."""
    line, their_line = socket.socketpair()
    their_input, stdin = make_pipe()
    stdout, their_output = make_pipe()
    for end in (their_line, their_input, their_output):
        theirs.enter_context(end)
    line.sendall(json.dumps(command).encode() + b"\n")
    await child.connect(line, stdin, stdout)
    return their_input.fileno(), their_output.fileno(), their_line.fileno()
