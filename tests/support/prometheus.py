"""A private Prometheus that reads one server each second."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from .ports import accepts, free_port
from .process import terminate, wait_until

READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 60.0


def missing() -> str | None:
    """Says what is not installed, or None when a server can be started."""
    return None if shutil.which("prometheus") else "prometheus is not installed"


class PrometheusServer:
    """Starts on entry and has read the target twice then; stops on exit. The target is a host with
    a port, of the job `warren`."""

    def __init__(self, target: str, rules: Path) -> None:
        self._target = target
        self._rules = rules
        self._temporary = tempfile.TemporaryDirectory(prefix="warren-prometheus-")
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{free_port()}"

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that the expression has now. Raises `AssertionError` if it can't be read."""
        found = self._get("query", query=expression)
        assert found["status"] == "success", (expression, found)
        series: list[dict[str, Any]] = found["data"]["result"]
        return series

    def rules(self) -> dict[str, dict[str, Any]]:
        """The alerts by name, with their state and health."""
        groups = self._get("rules")["data"]["groups"]
        return {rule["name"]: rule for group in groups for rule in group["rules"]}

    def _get(self, path: str, **query: str) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{self.url}/api/v1/{path}", params=query).json()
        return found

    def _configuration(self) -> str:
        scrape = {"job_name": "warren", "static_configs": [{"targets": [self._target]}]}
        interval = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        rules = [str(self._rules.resolve())]
        # JSON is YAML.
        return json.dumps({"global": interval, "rule_files": rules, "scrape_configs": [scrape]})

    def _is_ready(self) -> bool:
        return httpx.get(f"{self.url}/-/ready").is_success

    def _has_read_twice(self) -> bool:
        (counted, *_) = self.query("count_over_time(up[1m])") or [{"value": [0, "0"]}]
        return int(counted["value"][1]) > 1 and bool(self.query("up == 1"))

    def __enter__(self) -> Self:
        directory = Path(self._temporary.name)
        configuration = directory / "prometheus.yml"
        configuration.write_text(self._configuration())
        address = self.url.removeprefix("http://")
        self._process = subprocess.Popen(
            [
                "prometheus", f"--config.file={configuration}", f"--web.listen-address={address}",
                f"--storage.tsdb.path={directory / 'data'}",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=directory, start_new_session=True,
        )  # fmt: skip
        try:
            port = int(address.rpartition(":")[2])
            wait_until(lambda: accepts(port), READY_TIMEOUT_S, "Prometheus listens")
            wait_until(self._is_ready, READY_TIMEOUT_S, "Prometheus answers queries")
            wait_until(self._has_read_twice, READY_TIMEOUT_S, "Prometheus has read its target")
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
        assert self._process is not None
        terminate(self._process, STOP_TIMEOUT_S)
        self._temporary.cleanup()
