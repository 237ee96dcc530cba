"""A copy that runs, with what tests need of `subprocess.Popen`."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from subprocess import TimeoutExpired


class ForkedProcess:
    """A child of another process: its id and its end are packets of a socket.

    Raises `ConnectionError` if that process has ended.
    """

    def __init__(self, args: Sequence[str], line: socket.socket) -> None:
        self.args = args
        self.returncode: int | None = None
        self._line = line
        self.pid = int(self._read())

    def poll(self) -> int | None:
        """Returns the exit code, or None while the process runs."""
        try:
            return self.wait(0)
        except TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Returns the exit code, negative for a signal; raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            self._line.settimeout(timeout)
            try:
                self.returncode = int(self._read())
            except (BlockingIOError, TimeoutError):
                raise TimeoutExpired(self.args, timeout or 0) from None
            self._line.close()
        return self.returncode

    def _read(self) -> bytes:
        told = self._line.recv(16)
        if not told:
            raise ConnectionResetError(f"the process that started {self.args!r} has ended")
        return told

    def send_signal(self, number: int) -> None:
        """Sends the signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
