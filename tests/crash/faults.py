"""Faults from outside: system calls that fail or take long, a small disk, a network that dies."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.process import kill, terminate, wait_until
from tests.support.server import WarrenServer, warren_command

ATTACH_TIMEOUT_S = 60.0
INJECTED = "(INJECTED)"
DELAYED = "(DELAYED)"
READ_BYTES = 1 << 16


def need(tool: str) -> str:
    """Gives the tool's path, or skips the test."""
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"{tool} is not installed")
    return path


class Injection:
    """What strace did to the server; it ends with the context."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    @property
    def fired(self) -> int:
        """How many system calls were tampered with."""
        text = self._trace.read_text(errors="replace")
        return text.count(INJECTED) + text.count(DELAYED)


def unreadable(file: Path, when: str) -> list[str]:
    """What to begin a command with whose main thread can't read this file; `when` as strace
    spells it. That is the thread which reads at a start."""
    fault = ["-e", "trace=pread64", "-e", f"inject=pread64:error=EIO:when={when}"]
    # The traced process is the child itself, as it would be without.
    command = [need("strace"), "-D", "-o", "/dev/null", "-P", str(file)]
    if subprocess.run([*command, *fault, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("strace may not trace processes here")
    return [*command, *fault]


@contextlib.contextmanager
def injected(
    server: WarrenServer, calls: str, fault: str, directory: Path, file: Path | None = None
) -> Iterator[Injection]:
    """Does `fault`, as strace spells it, to these system calls of a running server; with `file`
    only to those that concern it."""
    trace = directory / "strace.txt"
    trace.unlink(missing_ok=True)
    command = [need("strace"), "-f", "-p", str(server.pid), "-o", str(trace)]
    command += [] if file is None else ["-P", str(file)]
    command += ["-e", f"trace={calls}", "-e", f"inject={calls}:{fault}"]
    tracer = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(
            lambda: tracer.poll() is not None or _is_traced(server.pid),
            ATTACH_TIMEOUT_S,
            "attaching strace",
        )
        if tracer.poll() is not None:
            pytest.skip("strace may not trace other processes here")
        yield Injection(trace)
    finally:
        terminate(tracer, ATTACH_TIMEOUT_S)


def _is_traced(pid: int) -> bool:
    """Whether every thread of it has a tracer."""
    tasks = list(Path(f"/proc/{pid}/task").iterdir())
    return all("TracerPid:\t0\n" not in (task / "status").read_text() for task in tasks)


class SmallDisk:
    """A file system in memory that only its own server sees; it goes with the context."""

    def __init__(self, directory: Path, size_bytes: int) -> None:
        self._directory = directory
        self._private = [need("unshare"), "--mount"]
        self._private += [] if os.geteuid() == 0 else ["--map-root-user"]
        script = f'mount -t tmpfs -o size={size_bytes} tmpfs "$1" && echo mounted && exec cat'
        self._holder = subprocess.Popen(
            [*self._private, "sh", "-c", script, "sh", str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> SmallDisk:
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"mounted\n":
            self.__exit__()
            pytest.skip("unshare may not mount a file system here")
        return self

    def __exit__(self, *error: object) -> None:
        kill(self._holder)
        for stream in (self._holder.stdin, self._holder.stdout):
            if stream is not None:
                stream.close()

    @property
    def seen_from_outside(self) -> Path:
        """Its directory, for those who do not see the disk."""
        return Path(f"/proc/{self._holder.pid}/root{self._directory}")

    @property
    def inside(self) -> list[str]:
        """What a command begins with that sees the disk."""
        command = [need("nsenter"), "--mount", "--target", str(self._holder.pid)]
        return command if os.geteuid() == 0 else [*command, "--user", "--preserve-credentials"]

    @property
    def command(self) -> list[str]:
        """Starts a server that sees the disk."""
        return [*self.inside, *warren_command()]

    def resize(self, size_bytes: int) -> None:
        options = f"remount,size={size_bytes}"
        mount = ["mount", "-o", options, str(self._directory)]
        subprocess.run([*self.inside, *mount], check=True)


class BlackHole:
    """A way to a port that can fall silent: nothing passes any more, and nothing is closed."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._sockets: list[socket.socket] = [self._listener]
        self._silent = threading.Event()
        self.closed = threading.Event()
        """The server has ended a connection that was silent."""
        self._start(self._accept)

    def _start(self, work: object, *arguments: object) -> None:
        assert callable(work)
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += near, far
                self._start(self._pass, near, far)
                self._start(self._pass, far, near)

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(READ_BYTES):
                if not self._silent.is_set():
                    target.sendall(data)
        if self._silent.is_set():
            self.closed.set()

    def fall_silent(self) -> None:
        self._silent.set()

    def __enter__(self) -> BlackHole:
        return self

    def __exit__(self, *error: object) -> None:
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
