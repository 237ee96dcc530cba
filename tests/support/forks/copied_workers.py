"""Has this process start workers as copies (`worker_forks.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from warrenmq.hub.processes import starter

from .fork_server import ForkServer
from .process import ForkedProcess


class Copies:
    """What stands for `subprocess` in `hub/processes/starter.py`."""

    def __init__(self, starters: ForkServer) -> None:
        self._starters = starters

    def Popen(self, command: Sequence[str], stdin: int, env: Mapping[str, str]) -> ForkedProcess:
        """Starts the program that starts processes."""
        with ExitStack() as files:
            standard = [
                files.enter_context(open(number, mode, 0, closefd=False))
                for number, mode in ((stdin, "rb"), (1, "wb"), (2, "wb"))
            ]
            return self._starters.start(command, env, standard)


def copy_workers(starters: ForkServer) -> None:
    """Has this process and its copies do so."""
    vars(starter)["subprocess"] = Copies(starters)
