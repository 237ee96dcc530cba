"""A real standalone master of Spark with workers, from the installed PySpark, on loopback."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyspark

from .ports import free_port
from .process import wait_until

HOST: Final = "127.0.0.1"
START_TIMEOUT_S: Final = 90.0
DEPLOY: Final = "org.apache.spark.deploy"
SETTINGS: Final = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    # It knows nothing of the secret: whoever reaches it could run anything.
    "spark.master.rest.enabled": "false",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
}
LOG: Final = """rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


class SparkCluster:
    """Starts a master and workers with one core each on entry, and ends them on exit.

    They write below `directory`; `java` is a JAVA_HOME.
    """

    def __init__(self, directory: Path, java: Path, *, workers: int) -> None:
        self._directory = directory
        self._port, self._page_port = free_port(), free_port()
        conf = directory / "conf"
        conf.mkdir(parents=True)
        settings = SETTINGS | {"spark.authenticate.secret": secrets.token_hex(16)}
        lines = (f"{name} {value}\n" for name, value in settings.items())
        (conf / "spark-defaults.conf").write_text("".join(lines))
        (conf / "log4j2.properties").write_text(LOG)
        self.env = {
            **os.environ,
            "JAVA_HOME": str(java),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(conf),
            "SPARK_HOME": pyspark.__path__[0],
            "SPARK_LOCAL_IP": HOST,
        }
        self._worker_count = workers
        self._daemons: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"spark://{HOST}:{self._port}"

    def kill_worker(self) -> None:
        """Ends a worker and its executors by SIGKILL, as if its machine had lost power."""
        _kill(self._daemons[-1])

    def output(self) -> str:
        """Everything that master, workers and executors have printed."""
        logs = [*self._directory.rglob("*.log"), *self._directory.rglob("stderr")]
        return "\n".join(f"{log}:\n{log.read_text(errors='replace')}" for log in logs)

    def _start(self, name: str, kind: str, page_port: int, *arguments: str) -> None:
        places = ["--host", HOST, "--webui-port", str(page_port), *arguments]
        memory = {"SPARK_DAEMON_MEMORY": "256m"}
        memory["SPARK_DAEMON_JAVA_OPTS"] = "-XX:TieredStopAtLevel=1"
        with (self._directory / f"{name}.log").open("wb") as log:
            self._daemons.append(
                subprocess.Popen(
                    [Path(self.env["SPARK_HOME"], "bin", "spark-class"), kind, *places],
                    env=self.env | memory,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def _alive_workers(self) -> int:
        if any(daemon.poll() is not None for daemon in self._daemons):
            raise RuntimeError(f"a part of the cluster has ended:\n{self.output()}")
        try:
            with urllib.request.urlopen(
                f"http://{HOST}:{self._page_port}/json/", timeout=5
            ) as page:
                state: dict[str, Any] = json.load(page)
        except (OSError, json.JSONDecodeError):
            # The master's page answers with HTML until its handler of /json/ is attached.
            return -1
        return int(state["aliveworkers"])

    def __enter__(self) -> Self:
        try:
            self._start(
                "master", f"{DEPLOY}.master.Master", self._page_port, "--port", str(self._port)
            )
            for number in range(self._worker_count):
                place = ("--work-dir", str(self._directory / f"worker-{number}"))
                use = ("--cores", "1", "--memory", "1g", *place, self.url)
                self._start(f"worker-{number}", f"{DEPLOY}.worker.Worker", free_port(), *use)
            wait_until(
                lambda: self._alive_workers() == self._worker_count, START_TIMEOUT_S, "the cluster"
            )
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        for daemon in reversed(self._daemons):
            _kill(daemon)


def _kill(daemon: subprocess.Popen[bytes]) -> None:
    """Ends a process and what it has started, which are a session of their own."""
    if daemon.poll() is None:
        os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()
