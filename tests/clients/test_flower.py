"""Celery's Flower: its broker page and its API show what the management API says of queues."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from celery import Celery

from tests.support.ports import free_port
from tests.support.process import terminate, wait_until
from tests.support.server import WarrenServer

START_TIMEOUT_S = STOP_TIMEOUT_S = 60.0
QUEUE = "celery"
"""Flower asks about the default queue while there is no worker."""


@pytest.fixture
def flower(warren: WarrenServer, tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of Flower, which shows an application with two waiting tasks."""
    with Celery(broker=warren.amqp_url) as app:
        for _ in range(2):
            app.send_task("wait")
    port, log = free_port(), tmp_path / "flower.log"
    command = [
        sys.executable, "-m", "celery", f"--broker={warren.amqp_url}", "flower",
        "--address=127.0.0.1", f"--port={port}", "--inspect_timeout=100",
        f"--broker_api=http://guest:guest@{warren.host}:{warren.http_port}/api/",
    ]  # fmt: skip
    env = {**os.environ, "FLOWER_UNAUTHENTICATED_API": "true"}
    with log.open("wb") as output, httpx.Client(base_url=f"http://127.0.0.1:{port}") as http:
        process = subprocess.Popen(
            command, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            wait_until(lambda: _answers(http, process), START_TIMEOUT_S, "Flower's first answer")
            assert process.poll() is None, log.read_text()
            yield http
        finally:
            if process.poll() is None:
                terminate(process, STOP_TIMEOUT_S)
    assert "management API call failed" not in log.read_text()


def _answers(http: httpx.Client, process: subprocess.Popen[bytes]) -> bool:
    try:
        return http.get("/healthcheck").status_code == 200
    except httpx.TransportError:
        return process.poll() is not None


@pytest.mark.timeout(3 * START_TIMEOUT_S)
def test_queues_are_shown(flower: httpx.Client) -> None:
    (found,) = flower.get("/api/queues/length").raise_for_status().json()["active_queues"]
    assert (found["name"], found["messages"], found["messages_ready"]) == (QUEUE, 2, 2)
    assert (found["messages_unacknowledged"], found["consumers"]) == (0, 0)
    page = flower.get("/broker").raise_for_status().text
    row = page.partition(f'<tr id="{QUEUE}">')[2].partition("</tr>")[0]
    cells = [cell.partition("</td>")[0] for cell in row.split("<td")[1:]]
    shown = [cell.partition(">")[2].strip() for cell in cells]
    assert (shown[0], [int(number) for number in shown[1:5]]) == (QUEUE, [2, 0, 2, 0])
