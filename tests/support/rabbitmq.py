"""A private RabbitMQ beside Warren: own node, own port mapper, loopback only."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from .ports import accepts, free_port
from .process import kill, terminate, wait_until

READY_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 30.0
READY_TEXT = " completed with "
PACKAGED = "lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"


def find_server() -> Path | None:
    """The server script itself: a distribution's wrapper on PATH insists on its own user."""
    for prefix in (Path("/usr"), Path("/usr/local"), Path("/opt/homebrew")):
        if scripts := sorted(prefix.glob(PACKAGED)):
            return scripts[-1]
    on_path = shutil.which("rabbitmq-server")
    return Path(on_path) if on_path else None


def missing() -> str | None:
    """Says what is not installed, or None when a server can be started."""
    if find_server() is None:
        return "rabbitmq-server is not installed"
    return None if shutil.which("epmd") else "epmd (Erlang) is not installed"


class RabbitMQServer:
    """Starts RabbitMQ with these plugins on entry; stops it and its port mapper on exit.

    The port mapper (epmd) runs as a child of its own, in the foreground, because one that
    Erlang starts by itself detaches and outlives everything.
    """

    host = "127.0.0.1"

    def __init__(self, *plugins: str) -> None:
        self._plugins = plugins
        self.port = free_port()
        self.management_port = free_port()
        """Of the management API, if its plugin is started."""
        self.prometheus_port = free_port()
        """Of the metrics, if their plugin is started."""
        self._epmd_port = free_port()
        self._temporary = tempfile.TemporaryDirectory(prefix="warren-rabbitmq-")
        self._directory = Path(self._temporary.name)
        self._log = self._directory / "output.log"
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    def amqp_url(self) -> str:
        return f"amqp://guest:guest@{self.host}:{self.port}/%2F"

    @property
    def pid(self) -> int:
        """Of the Erlang machine, whose processor time is the broker's."""
        return self._children[-1].pid

    def output(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _env(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if "RABBITMQ" not in name}
        home = self._directory
        (home / "enabled_plugins").write_text(f"[{','.join(self._plugins)}].\n")
        (home / "env.conf").touch()
        settings = ["log.console = true", "log.file = false"]
        if "rabbitmq_management" in self._plugins:
            settings.append(f"management.tcp.ip = {self.host}")
            settings.append(f"management.tcp.port = {self.management_port}")
        if "rabbitmq_prometheus" in self._plugins:
            settings.append(f"prometheus.tcp.ip = {self.host}")
            settings.append(f"prometheus.tcp.port = {self.prometheus_port}")
            settings.append("collect_statistics_interval = 1000")
        (home / "rabbitmq.conf").write_text("\n".join(settings) + "\n")
        return clean | {
            "HOME": str(home),
            "ERL_EPMD_ADDRESS": self.host,
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_NODENAME": f"warren-test-{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": self.host,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_PID_FILE": str(home / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(home / "env.conf"),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}"
            ),
            # The script then becomes the Erlang machine instead of staying as its parent.
            "RUNNING_UNDER_SYSTEMD": "true",
        }

    def _spawn(self, command: list[str], env: dict[str, str]) -> None:
        with self._log.open("ab") as log:
            self._children.append(
                subprocess.Popen(
                    command,
                    env=env,
                    cwd=self._directory,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def _gone(self) -> bool:
        return any(child.poll() is not None for child in self._children)

    def start(self) -> None:
        """Returns when clients are accepted; raises `RuntimeError` with the output."""
        script = find_server()
        assert script is not None, missing()
        env = self._env()
        self._spawn(["epmd", "-port", str(self._epmd_port), "-address", self.host], env)
        wait_until(lambda: self._gone() or accepts(self._epmd_port), READY_TIMEOUT_S, "epmd")
        self._spawn([str(script)], env)
        self._await_start()

    def _await_start(self) -> None:
        wait_until(
            lambda: self._gone() or READY_TEXT in self.output(), READY_TIMEOUT_S, "RabbitMQ's start"
        )
        if self._gone():
            raise RuntimeError(f"RabbitMQ did not start:\n{self.output()}")

    def kill_and_start(self) -> None:
        """Kills the broker with SIGKILL, and starts it again on what it had on disk."""
        kill(self._children.pop())
        self._log.unlink()
        self._spawn([str(find_server())], self._env())
        self._await_start()

    def ctl(self, *arguments: str) -> str:
        """Returns the output of `rabbitmqctl`; raises `RuntimeError` with its error text."""
        script, env = find_server(), self._env()
        assert script is not None, missing()
        tool = script.with_name("rabbitmqctl")
        done = subprocess.run(
            [tool, "--node", env["RABBITMQ_NODENAME"], *arguments],
            env=env, cwd=self._directory, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"rabbitmqctl {' '.join(arguments)}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def stop(self) -> None:
        """Stops the broker first, then the port mapper, and removes the directory."""
        try:
            for child in reversed(self._children):
                terminate(child, STOP_TIMEOUT_S)
        finally:
            for child in self._children:
                kill(child)
            self._children.clear()
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
