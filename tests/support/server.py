"""A real `warren serve` on free loopback ports, for one test module or one test."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import httpx

from .forks import FORKS
from .ports import free_port
from .process import AnyProcess, cpu_seconds, kill, terminate, wait_until, waited_seconds

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
REST_TIMEOUT_S = 60.0
RESTING_FOR_S, RESTING_CPU_S = 0.5, 0.1


def warren_command() -> list[str]:
    """The console script that is installed beside this interpreter."""
    return [str(Path(sys.executable).with_name("warren"))]


class WarrenServer:
    """Starts the server on entry and stops it on exit; its data directory goes with it.

    `env` and `args` are added to the environment and the command line. With `data` the
    directory is the caller's and stays. A start and a stop may take `timeout_s` each, or a minute.

    The server is a copy of a process that has loaded the program, which saves most of the time. It
    is a program of its own with a `command` that replaces the installed `warren`, and where `env`
    has what an interpreter reads when it starts.
    """

    host = "127.0.0.1"
    STARTED: tuple[str, ...] = ("ready",)
    """How a line begins that ends the wait of `start`."""

    def __init__(
        self,
        *,
        dev: bool = True,
        env: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
        data: Path | None = None,
        command: Sequence[str] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.amqp_port = free_port()
        self.http_port = free_port()
        self._temporary = tempfile.TemporaryDirectory(prefix="warren-test-")
        self._log = Path(self._temporary.name, "output.log")
        self.data = data or Path(self._temporary.name, "data")
        self._arguments = ["serve", *self._flags(dev), *args]
        if command is None and not all(name.startswith("WARREN_") for name in env or {}):
            command = warren_command()
        self._command = command
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith("WARREN_")
        }
        own = {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}  # see `terminate`
        self._env = {**clean, **own, **(env or {})}
        self._process: AnyProcess | None = None
        self._timeout_s = timeout_s

    def _flags(self, dev: bool) -> list[str]:
        ports = ["--amqp-port", str(self.amqp_port), "--http-port", str(self.http_port)]
        return ["--data", str(self.data), "--host", self.host, *ports, *(["--dev"] if dev else [])]

    @property
    def amqp_url(self) -> str:
        return f"amqp://guest:guest@{self.host}:{self.amqp_port}/%2F"

    @property
    def http_url(self) -> str:
        """Without a slash at the end."""
        return f"http://{self.host}:{self.http_port}"

    @property
    def process(self) -> AnyProcess:
        assert self._process is not None, "the server was not started"
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def output(self) -> str:
        """Everything printed since the last start, stdout and stderr together."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def start(self) -> None:
        """Returns when the line `ready` was printed; raises `RuntimeError` with the output."""
        assert not self.running, "the server runs already"
        with self._log.open("wb") as log:
            self._process = self._started(log)
        try:
            wait_until(self._ready_or_gone, self._timeout_s or READY_TIMEOUT_S, "the line 'ready'")
        except TimeoutError:
            self.kill()
        except BaseException:  # of a test that took too long: pytest would wait for it
            self.kill()
            raise
        if not self.running:
            raise RuntimeError(f"warren serve did not get ready:\n{self.output()}")

    def _started(self, log: BinaryIO) -> AnyProcess:
        if self._command is None:
            with open(os.devnull, "rb") as nothing:
                return FORKS.start(self._arguments, self._env, (nothing, log, log))
        return subprocess.Popen(
            [*self._command, *self._arguments],
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def _ready_or_gone(self) -> bool:
        ready = any(line.startswith(self.STARTED) for line in self.output().splitlines())
        return ready or not self.running

    def rest(self) -> None:
        """Has the hub's database opened, as its first use does, and waits until that is over. It
        takes 0.4 s of CPU and some 30 MiB, which are nobody else's."""
        audit = f"{self.http_url}/api/warren/audit"
        httpx.get(audit, auth=("guest", "guest"), verify=False, timeout=30).raise_for_status()
        self.settle()

    def settle(self) -> None:
        """Waits until the server needs no processor. One that waits for a processor does not
        rest."""
        wanted_s, since_s = self._wanted_cpu_s(), time.monotonic()

        def rests() -> bool:
            nonlocal wanted_s, since_s
            now_s = self._wanted_cpu_s()
            if abs(now_s - wanted_s) > RESTING_CPU_S:
                wanted_s, since_s = now_s, time.monotonic()
            return time.monotonic() - since_s > RESTING_FOR_S

        wait_until(rests, REST_TIMEOUT_S, "rest")

    def _wanted_cpu_s(self) -> float:
        return cpu_seconds(self.pid) + waited_seconds(self.pid)

    def stop(self) -> int:
        """Sends SIGTERM, waits and gives the exit code; of a stopped one the code it had."""
        return terminate(self.process, self._timeout_s or STOP_TIMEOUT_S, self.output)

    def kill(self) -> None:
        """Sends SIGKILL: what was not on disk is lost, as in a crash."""
        kill(self.process)

    def restart(self) -> None:
        """Stops a running server, then starts again with the same ports and data."""
        if self.running:
            self.stop()
        self.start()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._temporary.cleanup()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self.running:
                self.stop()
        finally:
            self._temporary.cleanup()
