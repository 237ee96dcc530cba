"""The process that is copied, from the side of the tests."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from .process import ForkedProcess

ROOT = Path(__file__).parents[3]


class ForkServer:
    """Starts programs as copies of a process that runs a `module` beside this one: it starts at
    first use and ends with this process. If somebody kills it, the next start begins another.

    With `requests` there is such a process already. It can ask `others` for copies of its own.
    """

    def __init__(
        self,
        module: str,
        requests: socket.socket | None = None,
        others: ForkServer | None = None,
    ) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        """The process that is copied; None before the first use."""
        self._module = f"{__package__}.{module}"
        self._requests = requests
        self._others = others
        atexit.register(self._end)

    def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], standard: Sequence[IO[Any]]
    ) -> ForkedProcess:
        """Runs the program with the arguments; `standard` are its input, output and error."""
        try:
            return self._copy(arguments, environment, standard)
        except ConnectionError:
            self._end()
            return self._copy(arguments, environment, standard)

    def _copy(
        self, arguments: Sequence[str], environment: Mapping[str, str], standard: Sequence[IO[Any]]
    ) -> ForkedProcess:
        """Raises `ConnectionError` if the process that is copied has ended."""
        request = {"arguments": [*arguments], "environment": {**environment}, "cwd": os.getcwd()}
        line, their_line = socket.socketpair(type=socket.SOCK_SEQPACKET)
        try:
            with their_line:
                message = json.dumps(request).encode()
                descriptors = [*(file.fileno() for file in standard), their_line.fileno()]
                socket.send_fds(self._opened(), [message], descriptors)
            return ForkedProcess([self._module, *arguments], line)
        except ConnectionError:
            line.close()
            raise

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], given: str, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Runs the program to its end with `given` as its input.

        Raises `subprocess.TimeoutExpired`, and ends the program first."""
        with TemporaryFile("w+") as stdin, TemporaryFile("w+") as out, TemporaryFile("w+") as err:
            stdin.write(given)
            stdin.seek(0)
            process = self.start(arguments, environment, (stdin, out, err))
            try:
                code = process.wait(timeout_s)
            finally:
                process.kill()
            for file in (out, err):
                file.seek(0)
            return subprocess.CompletedProcess(process.args, code, out.read(), err.read())

    def _opened(self) -> socket.socket:
        if self._requests is None:
            handed = [self._others._opened().fileno()] if self._others else []
            self._requests, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", self._module, *map(str, handed)],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    cwd=ROOT,
                    env={**os.environ, "PYTHONUNBUFFERED": "1"},
                    pass_fds=handed,
                )
        return self._requests

    def _end(self) -> None:
        """Ends the process that is copied, if it is one of this process."""
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self.process is not None:
            self.process.wait()


STARTERS = ForkServer("worker_forks")
"""Starts the programs that start worker processes."""
FORKS = ForkServer("main", others=STARTERS)
"""Starts `warren`."""
