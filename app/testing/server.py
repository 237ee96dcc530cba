"""A Warren in a process of its own, on free ports of this machine, which ends with this process."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any, Final, Self
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

HOST: Final = "127.0.0.1"
READY_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 30.0
REQUEST_TIMEOUT_S: Final = 30.0
USER: Final = "guest"
_FREE_PORTS: Final = {"amqp_port": 0, "http_port": 0}
_DECIDED: Final = {
    "data": "give it as Warren(data=...)",
    "host": f"a test server listens on {HOST} alone",
    "dev": "a test server always has it",
}
_VARIABLES: Final = "WARREN_"
# `-P`: files of the working directory, such as a secrets.py, are not imported in place of modules.
# The server stops when its standard input ends, so also when this process is killed.
_PROGRAM: Final = """
import os, signal, threading

def stop_with_parent():
    while os.read(0, 64):
        pass
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=stop_with_parent, daemon=True).start()
from warrenmq.app.cli import main
main()
"""


@dataclass(frozen=True, slots=True)
class VirtualHost:
    """A virtual host of a Warren, and its URLs for clients; `http_url` has no slash at the end."""

    name: str
    amqp_url: str
    http_url: str


class Warren:
    """A server for `with` and `async with`; user and password are `guest`.

    `settings` are those of `warren serve`, such as `{"max_message_bytes": 1000}`; without
    `amqp_port` and `http_port` the ports are free ones. Without `data` the data directory is
    temporary. Callbacks on this machine are allowed.

    Raises `ValueError` for a setting that is decided here: `data`, `host` and `dev`.
    """

    def __init__(
        self, *, data: str | Path | None = None, settings: Mapping[str, object] | None = None
    ) -> None:
        self._given_data = data
        self._settings = {**_FREE_PORTS, **(settings or {})}
        fixed = next((name for name in _DECIDED if name in self._settings), None)
        if fixed is not None:
            raise ValueError(f"settings: '{fixed}' can't be set here: {_DECIDED[fixed]}")
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[str] | None = None
        self.amqp_port = 0
        self.http_port = 0

    @classmethod
    def run(
        cls, *, data: str | Path | None = None, settings: Mapping[str, object] | None = None
    ) -> Self:
        """Returns a server to be started: `with Warren.run() as warren`."""
        return cls(data=data, settings=settings)

    @property
    def amqp_url(self) -> str:
        """The URL of the virtual host `/`."""
        return self._amqp_url("/")

    @property
    def http_url(self) -> str:
        """The URL of the HTTP port, without a slash at the end."""
        return f"http://{HOST}:{self.http_port}"

    @contextmanager
    def vhost(self) -> Iterator[VirtualHost]:
        """Makes an empty virtual host, which is deleted at the end of the block."""
        name = f"test-{secrets.token_hex(6)}"
        self._request("PUT", f"/api/vhosts/{name}")
        try:
            yield VirtualHost(name, self._amqp_url(name), f"{self.http_url}/{name}")
        finally:
            self._request("DELETE", f"/api/vhosts/{name}")

    # -- its life

    def start(self) -> Self:
        """Returns when clients can connect. Raises `RuntimeError` with the output of a server that
        did not start."""
        assert self._process is None, "the server runs already"
        self._temporary = tempfile.TemporaryDirectory(prefix="warren-")
        folder = Path(self._temporary.name)
        with (folder / "output").open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, "serve", *self._flags(folder)],
                env=self._environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, text=True, start_new_session=True,
            )  # fmt: skip
        limit = Timer(READY_TIMEOUT_S, self._process.kill)
        limit.start()
        try:
            printed = self._read_until_ready(self._process)
        finally:
            limit.cancel()
        if not printed[-1:] or not printed[-1].startswith("ready"):
            text = "".join(printed) + (folder / "output").read_text(errors="replace")
            self.stop()
            raise RuntimeError(f"warren serve did not get ready:\n{text}")
        return self

    def stop(self) -> None:
        """Stops the server and removes a temporary data directory; does nothing without one.

        A server whose data nobody keeps does not wait for its clients.
        """
        process, self._process = self._process, None
        if process is not None:
            (process.kill if self._given_data is None else process.terminate)()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)

    # -- inside

    def _flags(self, folder: Path) -> list[str]:
        data = folder / "data" if self._given_data is None else self._given_data
        return ["--data", str(data), "--host", HOST, "--dev"]

    def _environment(self) -> dict[str, str]:
        """Returns the environment without the settings of other servers."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith(_VARIABLES)}
        own = {f"{_VARIABLES}{name.upper()}": str(value) for name, value in self._settings.items()}
        return {**clean, "PYTHONUNBUFFERED": "1", **own}

    def _read_until_ready(self, process: subprocess.Popen[str]) -> list[str]:
        """Returns the lines up to `ready`, or all; notes the ports."""
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            listening = line.rstrip().removeprefix("listening on ")
            if listening.startswith("amqp://"):
                self.amqp_port = urlsplit(listening).port or 0
            elif listening.startswith("http://"):
                self.http_port = urlsplit(listening).port or 0
            elif line.startswith("ready"):
                break
        return lines

    def _amqp_url(self, vhost: str) -> str:
        return f"amqp://{USER}:{USER}@{HOST}:{self.amqp_port}/{quote(vhost, safe='')}"

    def _request(self, method: str, path: str) -> Any:
        login = base64.b64encode(f"{USER}:{USER}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
        request = Request(self.http_url + path, method=method, headers=headers)
        with urlopen(request, timeout=REQUEST_TIMEOUT_S) as response:
            body = response.read()
        return json.loads(body) if body else None
