"""A private PostgreSQL beside Warren: a cluster of its own, loopback and a socket only."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from uuid import uuid4

from .ports import free_port
from .process import Server, kill, wait_until

READY_TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 30.0
USER = "warren"
PASSWORD = "pass%w/o:r@d"
"""With what has a meaning in a URL."""
QUOTED_PASSWORD = "pass%25w%2Fo%3Ar%40d"
UNPRIVILEGED = ("postgres", "nobody")
ENCODING = ("--encoding=UTF8", "--no-locale")


def find_binaries() -> Path | None:
    """Debian's, the newest first: of its programs only the client's are on PATH."""
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    if newest := sorted(found, key=lambda path: int(path.parts[-3])):
        return newest[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


def missing() -> str | None:
    """Says what is not there, or None when a server can be started."""
    if find_binaries() is None:
        return "postgresql is not installed"
    return (
        None if _account() or os.getuid() else "PostgreSQL won't run as root, nor is there nobody"
    )


def _account() -> pwd.struct_passwd | None:
    """The user to run it as: the server refuses to run as root."""
    if os.getuid():
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next((known[name] for name in UNPRIVILEGED if name in known), None)


class PostgreSQLServer(Server):
    """Makes a cluster and starts it on entry; stops it by its process id on exit.

    `create` gives the URL of a new database. `kill` and `start` may follow each other.
    """

    host = "127.0.0.1"

    def __init__(self) -> None:
        self.port = free_port()
        self._temporary = tempfile.TemporaryDirectory(prefix="warren-pg-", dir="/tmp")
        self.directory = Path(self._temporary.name)
        self._log = self.directory / "output.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._account = _account()

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def url(self, database: str) -> str:
        return f"postgresql://{USER}:{QUOTED_PASSWORD}@{self.host}:{self.port}/{database}"

    def create(self, options: str = "") -> str:
        """The URL of a new and empty database."""
        name = f"hub_{uuid4().hex}"
        self.sql(f"CREATE DATABASE {name} {options}")
        return self.url(name)

    def drop(self, url: str) -> None:
        self.sql(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")

    def sql(self, statement: str, url: str | None = None) -> str:
        """Returns its output, a line a row; raises `RuntimeError` with its error text."""
        done = subprocess.run(
            [self._program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement,
             url or self.url("postgres")],
            capture_output=True, text=True, check=False, timeout=STOP_TIMEOUT_S,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{statement}: {done.stderr}")
        return done.stdout.strip()

    def output(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def start(self) -> None:
        """Returns when it takes connections; raises `RuntimeError` with the output."""
        if not (self.directory / "data").exists():
            self._make_cluster()
        try:
            wait_until(self._spawned_and_ready, READY_TIMEOUT_S, "PostgreSQL's start")
        except TimeoutError as error:
            raise RuntimeError(f"{error}:\n{self.output()}") from None

    def kill(self) -> None:
        """Sends SIGKILL: its sessions end with it, what was not on disk is lost."""
        assert self._process is not None
        kill(self._process)

    def pause(self) -> None:
        """Stops answering, without closing connections, until `resume`."""
        for pid in self._sessions():
            os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        for pid in self._sessions():
            os.kill(pid, signal.SIGCONT)

    def _sessions(self) -> list[int]:
        """The server and all that it has started."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [self.pid, *map(int, children.split())]

    def stop(self) -> None:
        """Ends sessions and server (SIGINT is its fast shutdown), then removes the cluster."""
        process, self._process = self._process, None
        try:
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(STOP_TIMEOUT_S)
        finally:
            if process is not None:
                kill(process)
            self._temporary.cleanup()

    def _program(self, name: str) -> str:
        binaries = find_binaries()
        assert binaries is not None, missing()
        return str(binaries / name)

    def _make_cluster(self) -> None:
        password = self.directory / "password"
        password.write_text(PASSWORD)
        if self._account is not None:
            for path in (self.directory, password):
                os.chown(path, self._account.pw_uid, self._account.pw_gid)
        made = self._spawn(
            [self._program("initdb"), "--pgdata", str(self.directory / "data"), *ENCODING,
             "--username", USER, "--pwfile", str(password), "--auth", "scram-sha-256", "--no-sync"]
        )  # fmt: skip
        if made.wait(READY_TIMEOUT_S):
            raise RuntimeError(f"initdb failed:\n{self.output()}")

    def _spawned_and_ready(self) -> bool:
        # After a kill the sessions of the old server may hold its memory for a moment, and the
        # new one refuses to start.
        if self._process is None or self._process.poll() is not None:
            self._process = self._spawn(
                [self._program("postgres"), "-D", str(self.directory / "data"),
                 "-p", str(self.port), "-k", str(self.directory), "-h", self.host,
                 "-c", "shared_buffers=16MB", "-c", "max_connections=30"]
            )  # fmt: skip
        ready = [self._program("pg_isready"), "-q", "-h", self.host, "-p", str(self.port)]
        return subprocess.run(ready, timeout=STOP_TIMEOUT_S, check=False).returncode == 0

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        account = self._account
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=account and account.pw_uid,
                group=account and account.pw_gid,
                extra_groups=[] if account else None,
                env={name: value for name, value in os.environ.items() if name[:2] != "PG"},
            )
