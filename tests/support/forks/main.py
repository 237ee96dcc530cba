"""Loads Warren, then runs `warren` in a copy of this process for each request (`forks.py`).

The standard input is the socket for requests; the argument is the descriptor of the one where
copies ask for those that start workers (`worker_forks.py`).
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from importlib import import_module
from pkgutil import walk_packages
from unittest.mock import MagicMock

import warrenmq.app
import warrenmq.core
import warrenmq.hub
from warrenmq.app import cli
from warrenmq.app.configuration import loading as configuration
from warrenmq.app.route_table import other_routes
from warrenmq.core.auth import hashes

from .copied_workers import copy_workers
from .fork_server import ForkServer
from .forks import Forks, leave

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


def main() -> int:
    load()
    starters = ForkServer("worker_forks", socket.socket(fileno=int(sys.argv[1])))
    arguments = Forks(socket.socket(fileno=os.dup(0))).serve()
    if arguments is None:
        return 0
    copy_workers(starters)
    sys.argv = ["warren", *arguments]
    leave(cli.run(arguments))


if __name__ == "__main__":
    sys.exit(main())
