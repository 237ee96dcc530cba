"""A private RabbitMQ beside Warren: own node, own port mapper, loopback only."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from .port_mapper import PortMapper
from .ports import free_port
from .process import Server, kill, terminate, wait_until

READY_TIMEOUT_S = 600.0
"""Nodes take long where others need the processors."""
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


class RabbitMQServer(Server):
    """Starts RabbitMQ with these plugins on entry; stops it and its port mapper on exit.

    The nodes of a cluster share a `mapper` that somebody else starts and stops; `settings` are
    lines for rabbitmq.conf, `flags` are Erlang's, and `prefix` is what the command begins with. A
    node that was killed, or shut down, may be started again on what it has on disk.
    """

    host = "127.0.0.1"

    def __init__(self, *plugins: str, mapper: PortMapper | None = None) -> None:
        self._plugins = plugins
        self.port = free_port()
        self.management_port = free_port()
        """Of the management API, if its plugin is started."""
        self.prometheus_port = free_port()
        """Of the metrics, if their plugin is started."""
        self.tls_port = free_port()
        """Of AMQP, if there are certificates."""
        self.tls: Mapping[str, str] = {}
        """Files of a certificate: `cacertfile`, `certfile` and `keyfile`."""
        self.settings: list[str] = []
        self.flags: Sequence[str] = ()
        self.prefix: Sequence[str] = ()
        self._mapper = mapper or PortMapper()
        self._has_own_mapper = mapper is None
        self._temporary = tempfile.TemporaryDirectory(prefix="warren-rabbitmq-")
        self._directory = Path(self._temporary.name)
        self.data = self._directory / "mnesia"
        self._log = self._directory / "output.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def amqp_url(self) -> str:
        return f"amqp://guest:guest@{self.host}:{self.port}/%2F"

    @property
    def management_url(self) -> str:
        return f"http://{self.host}:{self.management_port}"

    @property
    def name(self) -> str:
        """Of the node, as others of its cluster know it."""
        return f"warren-test-{self.port}@{'localhost' if self._is_usual else self.host}"

    @property
    def _is_usual(self) -> bool:
        """Whether it shares its address with other nodes; one of its own is part of its name."""
        return self.host == RabbitMQServer.host

    @property
    def pid(self) -> int:
        """Of the Erlang machine, whose processor time is the broker's."""
        assert self._process is not None, "RabbitMQ was not started"
        return self._process.pid

    def output(self) -> str:
        """Everything printed since the last start."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _env(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if "RABBITMQ" not in name}
        home = self._directory
        address = f"{{{self.host.replace('.', ',')}}}"
        (home / "enabled_plugins").write_text(f"[{','.join(self._plugins)}].\n")
        (home / "env.conf").touch()
        settings = ["log.console = true", "log.file = false", *self.settings]
        if "rabbitmq_management" in self._plugins:
            kind = "ssl" if self.tls else "tcp"
            settings.append(f"management.{kind}.ip = {self.host}")
            settings.append(f"management.{kind}.port = {self.management_port}")
            settings += [f"management.ssl.{name} = {file}" for name, file in self.tls.items()]
        if self.tls:
            settings.append(f"listeners.ssl.1 = {self.host}:{self.tls_port}")
            settings += [f"ssl_options.{name} = {file}" for name, file in self.tls.items()]
        if "rabbitmq_prometheus" in self._plugins:
            settings.append(f"prometheus.tcp.ip = {self.host}")
            settings.append(f"prometheus.tcp.port = {self.prometheus_port}")
            settings.append("collect_statistics_interval = 1000")
        (home / "rabbitmq.conf").write_text("\n".join(settings) + "\n")
        return (
            clean
            | self._mapper.env
            | {
                "RABBITMQ_NODENAME": self.name,
                "RABBITMQ_NODE_IP_ADDRESS": self.host,
                "RABBITMQ_NODE_PORT": str(self.port),
                "RABBITMQ_DIST_PORT": str(free_port()),
                "RABBITMQ_MNESIA_BASE": str(self.data),
                "RABBITMQ_LOG_BASE": str(home / "log"),
                "RABBITMQ_PID_FILE": str(home / "pid"),
                "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
                "RABBITMQ_CONF_ENV_FILE": str(home / "env.conf"),
                "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
                "RABBITMQ_USE_LONGNAME": str(not self._is_usual).lower(),
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                    f"-start_epmd false -kernel inet_dist_use_interface {address}"
                    f" -kernel inet_dist_connect_options [{{ip,{address}}}]"
                    f" {' '.join(self.flags)}"
                ),
                # The script then becomes the Erlang machine instead of staying as its parent.
                "RUNNING_UNDER_SYSTEMD": "true",
            }
        )

    def _gone(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def start(self) -> None:
        """Returns when clients are accepted; raises `RuntimeError` with the output."""
        if self._has_own_mapper and self._process is None:
            self._mapper.start()
        self.spawn()
        self.await_start()

    def spawn(self) -> None:
        """Begins to start."""
        script = find_server()
        assert script is not None, missing()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*self.prefix, str(script)],
                env=self._env(),
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def await_start(self) -> None:
        wait_until(
            lambda: self._gone() or READY_TEXT in self.output(), READY_TIMEOUT_S, "RabbitMQ's start"
        )
        if self._gone():
            raise RuntimeError(f"RabbitMQ did not start:\n{self.output()}")

    @property
    def running(self) -> bool:
        return self._process is not None and not self._gone()

    def kill(self) -> None:
        """Sends SIGKILL, as in a crash."""
        assert self._process is not None, "RabbitMQ was not started"
        kill(self._process)

    def halt(self) -> None:
        """Sends SIGSTOP: it is silent, and its connections stay open."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def shut_down(self) -> None:
        """Stops the broker in order."""
        assert self._process is not None, "RabbitMQ was not started"
        terminate(self._process, STOP_TIMEOUT_S)

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
            if self.running:
                self.shut_down()
        finally:
            if self.running:
                self.kill()
            if self._has_own_mapper:
                self._mapper.stop()
            self._temporary.cleanup()
