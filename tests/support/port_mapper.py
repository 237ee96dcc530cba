"""Erlang's port mapper (epmd) as a child process, which nodes of one machine share."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
from pathlib import Path

from .ports import accepts, free_port
from .process import kill, wait_until

READY_TIMEOUT_S = 60.0


class PortMapper:
    """It runs in the foreground, because one that Erlang starts by itself detaches and outlives
    everything. `home` has the secret (cookie) by which nodes trust each other."""

    host = "127.0.0.1"

    def __init__(self, *others: str) -> None:
        """`others` are more addresses at which it is to be asked."""
        self._others = others
        self.port = free_port()
        self._temporary = tempfile.TemporaryDirectory(prefix="warren-epmd-")
        self.home = Path(self._temporary.name)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def env(self) -> dict[str, str]:
        """What nodes and their tools need to know of it."""
        return {
            "HOME": str(self.home),
            "ERL_EPMD_ADDRESS": self.host,
            "ERL_EPMD_PORT": str(self.port),
        }

    def start(self) -> None:
        cookie = self.home / ".erlang.cookie"
        cookie.write_text(secrets.token_hex())
        cookie.chmod(0o400)
        addresses = [self.host, *self._others]
        self._process = subprocess.Popen(
            ["epmd", "-port", str(self.port), "-address", ",".join(addresses)],
            env={**os.environ, **self.env},
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_until(lambda: accepts(self.port), READY_TIMEOUT_S, "epmd")

    def stop(self) -> None:
        if self._process is not None:
            kill(self._process)
        self._temporary.cleanup()
