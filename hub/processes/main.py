"""The program that starts the server's child processes; its standard input is a socket.

For each process one octet arrives there, with three descriptors: the standard input and output of
the process, and its line, a socket. On the line the command has arrived, JSON in one row; the
answers are a row with the process's id or an error, and one with its exit status. A process is
killed when the server closes its end of the line; all are, when the server ends in any way.

Signals that end a server are ignored, here and by the processes, for the server ends both. Only
the standard library is imported, so that this program starts fast and stays small.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress

Action = Callable[[], None]


class Starter:
    """Starts processes, and ends them with the server."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._is_wanted = True
        self._children: dict[socket.socket, subprocess.Popen[bytes]] = {}
        self._ready = selectors.DefaultSelector()
        self._ended = _sigchld()
        self._ready.register(self._requests, selectors.EVENT_READ, self._take)
        self._ready.register(self._ended, selectors.EVENT_READ, self._reap)

    def run(self) -> None:
        """Serves until the server ends."""
        try:
            while self._is_wanted:
                for key, _ in self._ready.select():
                    action: Action = key.data
                    action()
        finally:
            for child in self._children.values():
                child.kill()

    def _take(self) -> None:
        message, descriptors, _, _ = socket.recv_fds(self._requests, 1, 3)
        if not message:
            self._is_wanted = False
            return
        stdin, stdout, line = descriptors
        self._start(socket.socket(fileno=line), stdin, stdout)
        os.close(stdin)
        os.close(stdout)

    def _start(self, line: socket.socket, stdin: int, stdout: int) -> None:
        with line.makefile("rb") as rows:
            command = json.loads(rows.readline())
        try:
            child = subprocess.Popen(command, stdin=stdin, stdout=stdout)
        except OSError as error:
            _tell(line, {"error": str(error)})
            line.close()
            return
        _tell(line, {"pid": child.pid})
        self._children[line] = child
        self._ready.register(line, selectors.EVENT_READ, lambda: self._kill(line))

    def _kill(self, line: socket.socket) -> None:
        self._ready.unregister(line)
        self._children[line].kill()

    def _reap(self) -> None:
        self._ended.recv(4096)
        for line, child in list(self._children.items()):
            if child.poll() is not None:
                _tell(line, {"status": child.returncode})
                if line in self._ready.get_map():
                    self._ready.unregister(line)
                del self._children[line]
                line.close()


def _sigchld() -> socket.socket:
    """Returns a socket that has something to read when a process has ended."""
    ended, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return ended


def _tell(line: socket.socket, row: dict[str, object]) -> None:
    with suppress(OSError):  # the server has ended; `_take` sees it
        line.sendall(json.dumps(row).encode() + b"\n")


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    Starter(socket.socket(fileno=0)).run()
