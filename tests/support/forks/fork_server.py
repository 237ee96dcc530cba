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
    """Starts `warren` as copies of a process that starts at first use and ends with this one. If
    somebody kills that process, the next start begins another."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        """The process that is copied; None before the first use."""
        self._requests: socket.socket | None = None
        atexit.register(self._end)

    def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], standard: Sequence[IO[Any]]
    ) -> ForkedProcess:
        """Runs `warren` with the arguments; `standard` are its input, output and error."""
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
            return ForkedProcess(["warren", *arguments], line)
        except ConnectionError:
            line.close()
            raise

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], given: str, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Runs `warren` to its end with `given` as its input; raises `subprocess.TimeoutExpired`,
        and ends it first."""
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
            self._requests, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "tests.support.forks.main"],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    cwd=ROOT,
                    env={**os.environ, "PYTHONUNBUFFERED": "1"},
                )
        return self._requests

    def _end(self) -> None:
        """Ends the process that is copied, if there is one."""
        if self._requests is not None and self.process is not None:
            self._requests.close()
            self._requests = None
            self.process.wait()


FORKS = ForkServer()
"""The one of this process."""
