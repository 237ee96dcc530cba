"""Copies of a process: one for each request that arrives at a socket.

A request is the JSON of `arguments`, `environment` and `cwd`, with four descriptors: the copy's
standard input, output and error, and a socket that gets a packet with its process id and, when it
has ended, another with its exit code, negative for a signal.
"""

from __future__ import annotations

import atexit
import faulthandler
import json
import os
import selectors
import socket
import sys
import threading
from contextlib import suppress
from typing import Any, NoReturn, cast

MAX_REQUEST_BYTES = 1 << 18


class Forks:
    """Makes a copy for each request, and tells who asked when it has ended."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)

    def serve(self) -> list[str] | None:
        """Returns the arguments in a copy, and None when nobody is left to ask."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is not self._requests:
                    self._end(key)
                    continue
                message, descriptors, _, _ = socket.recv_fds(self._requests, MAX_REQUEST_BYTES, 4)
                if not message:
                    return None
                if (arguments := self._fork(json.loads(message), *descriptors)) is not None:
                    return arguments

    def _fork(self, request: dict[str, Any], *descriptors: int) -> list[str] | None:
        *standard, line = descriptors
        pid = os.fork()
        if not pid:
            os.close(line)
            self._close()
            return _become(request, standard)
        for descriptor in standard:
            os.close(descriptor)
        os.write(line, b"%d" % pid)
        self._selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, line))
        return None

    def _end(self, key: selectors.SelectorKey) -> None:
        pid, line = key.data
        self._selector.unregister(key.fileobj)
        _, status = os.waitpid(pid, 0)
        with suppress(BrokenPipeError):  # nobody waits for it
            os.write(line, b"%d" % os.waitstatus_to_exitcode(status))
        os.close(key.fd)
        os.close(line)

    def _close(self) -> None:
        for key in list(self._selector.get_map().values()):
            if key.data:
                os.close(key.fd)
                os.close(key.data[1])
        self._selector.close()
        self._requests.close()


def _become(request: dict[str, Any], standard: list[int]) -> list[str]:
    """Gives this process what a program finds that is started by itself."""
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    faulthandler.enable()
    arguments: list[str] = request["arguments"]
    return arguments


def leave(code: int) -> NoReturn:
    """Ends a copy as an interpreter ends, but for the objects: to free each of them means to copy
    the memory that it shares, which takes longer than most commands."""
    cast(Any, threading)._shutdown()  # waits for the threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
