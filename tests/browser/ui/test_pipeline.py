"""Runs and archives of the data pipeline in the web UI."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
import pytest

from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .signed_in import SignedInPage

pytestmark = pytest.mark.thorough

RUNS = "/api/hub/pipeline/runs"


def test_runs_and_archives_are_shown_and_a_run_is_removed(
    ui: SignedInPage, warren: WarrenServer
) -> None:
    ui.go("/pipeline")
    ui.shows("No runs yet", "main")
    text = "document.querySelector('main .empty pre')"
    assert ui.page.run(f"getComputedStyle({text}).textAlign") == "left"
    stream = {"durable": True, "arguments": {"x-queue-type": "stream"}}
    bodies = (
        (f"{RUNS}/rollup/one", {"state": "running", "rows": 1204, "lag": 7, "stream": "clicks"}),
        (f"{RUNS}/archive/two", {"state": "failed", "error": "the disk is full"}),
        ("/api/queues/%2F/log", stream),
        ("/api/hub/pipeline/archives/%2F/log/cold", {"offset": 0, "manifest": "/archives/log"}),
    )
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as client:
        for path, body in bodies:
            client.put(path, json=body).raise_for_status()
        ui.go("/pipeline")
        ui.shows("1,204", "main")
        ui.shows("clicks", "main")
        ui.shows("the disk is full", "main")
        ui.shows("/archives/log", "main")
        ui.go("/pipeline?state=failed")
        ui.page.wait("document.querySelectorAll('warren-table tbody tr').length === 1")
        ui.press("Remove", "main")
        ui.press("Remove the run two of archive from the list", "dialog")
        ui.shows("No runs match this filter.", "main")
        runs = client.get("/api/hub/pipeline").json()["runs"]
        assert [run["job"] for run in runs] == ["rollup"]


def test_what_jobs_publish_is_charted(ui: SignedInPage, warren: WarrenServer) -> None:
    minute = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:00.000Z}"
    row = {"minute": minute, "exchange": "<b>news</b>", "routing_key": "eu", "messages": 1204,
           "bytes": 1, "late": 0, "age_p99_ms": None, "offset": 1}  # fmt: skip
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as client:
        exchange = "/endpoint/x/hub.pipeline"
        client.put(exchange, params={"amqp.exchange_type": "topic"}).raise_for_status()
        client.put(f"{RUNS}/rollup/one", json={"state": "running"}).raise_for_status()
        client.post(exchange, params={"hub.topic": "rollup"}, json=row).raise_for_status()

        def is_kept() -> bool:
            found = client.get("/api/hub/pipeline/results", params={"job": "rollup"})
            return bool(found.raise_for_status().json()["groups"])

        wait_until(is_kept, 20.0, "the first result")
    ui.go("/pipeline")
    ui.shows("Messages by exchange, by the hour", "main")
    ui.shows("<b>news</b>", "main .legend")
    ui.press("Table", "main")
    ui.shows("1,204", "main warren-chart table")
