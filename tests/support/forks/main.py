"""Loads Warren, then runs `warren` in a copy of this process for each request.

The standard input is a socket. A request is the JSON of `arguments`, `environment` and `cwd`, with
four descriptors: the copy's standard input, output and error, and a socket that gets a packet with
its process id and, when it has ended, another with its exit code, negative for a signal.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import json
import os
import selectors
import socket
import sys
import threading
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, NoReturn, cast
from unittest.mock import MagicMock

import warrenmq.app
import warrenmq.core
import warrenmq.hub
from warrenmq.app import cli
from warrenmq.app.configuration import loading as configuration
from warrenmq.app.route_table import other_routes
from warrenmq.core.auth import hashes

MAX_REQUEST_BYTES = 1 << 18
_PACKAGES = (warrenmq.core, warrenmq.hub, warrenmq.app)
_NO_SERVER = ("warrenmq.hub.pipeline", "warrenmq.app.testing", "warrenmq.app.conformance")
"""Packages that need others which a server does not load."""
_AT_FIRST_USE = (
    "aiosqlite",
    "alembic.command",
    "argon2",
    "encodings.idna",
    "sqlalchemy.dialects.sqlite.aiosqlite",
    "uvicorn.lifespan.off",
    "uvloop",
)


def load() -> None:
    """Imports what a server has loaded when all of it has been used."""
    for package in _PACKAGES:
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(_NO_SERVER):
                import_module(module.name)
    for name in _AT_FIRST_USE:
        import_module(name)
    # A hash takes a third of a start, and so does each login.
    vars(hashes).update(ARGON2_MEMORY_KIB=8, ARGON2_TIME_COST=1)
    configuration.load({})
    # The patterns of its routes are compiled, and kept by `re`.
    other_routes(MagicMock(management_url=""), bool)
    gc.freeze()


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


def main() -> int:
    load()
    arguments = Forks(socket.socket(fileno=os.dup(0))).serve()
    if arguments is None:
        return 0
    sys.argv = ["warren", *arguments]
    _leave(cli.run(arguments))


def _leave(code: int) -> NoReturn:
    """Ends a copy as an interpreter ends, but for the objects: to free each of them means to copy
    the memory that it shares, which takes longer than most commands."""
    cast(Any, threading)._shutdown()  # waits for the threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
