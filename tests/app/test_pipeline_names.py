"""Names and numbers of the pipeline's paths that would be commands or places elsewhere."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import httpx
import pytest

from tests.support.server import WarrenServer

GUEST = ("guest", "guest")
DROP = "'; DROP TABLE pipeline_runs; --"
UP = "../../../escaped"
ROWS = b"WSR1" + struct.pack("<I", 0)


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=GUEST) as client:
        yield client


def quoted(name: str) -> str:
    return "".join(f"%{octet:02x}" for octet in name.encode())


@pytest.mark.parametrize("name", [DROP, UP])
def test_names_may_look_like_numbers(http: httpx.Client, warren: WarrenServer, name: str) -> None:
    run = f"/api/hub/pipeline/runs/archive/{quoted(name)}"
    assert http.put(run, json={"state": "done", "rows": 1, "error": DROP}).is_success
    runs = http.get("/api/hub/pipeline").json()["runs"]
    assert (name, DROP) in [(one["run"], one["error"]) for one in runs]
    assert http.delete(run).status_code == 204
    media_type = {"Content-Type": "application/vnd.warren.rows"}
    staged = f"/transactions/{quoted(name)}/0/0/0/0?exchange=amq.topic"
    assert http.put(staged, content=ROWS, headers=media_type).status_code == 201
    assert not [path for path in warren.data.parent.rglob("*") if "escaped" in path.name]
    assert http.get(f"/streams/%2F/{quoted(name)}/offsets").status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/streams/%2F/log/chunks?start={quoted('0' + DROP)}"),
        ("GET", f"/streams/%2F/log/chunks?start=0&end={quoted('9' + DROP)}"),
        ("GET", f"/streams/%2F/log/offsets?timestamp={quoted('2026-01-01' + DROP)}"),
        ("PUT", f"/transactions/q/0/0/0/{quoted(UP)}?exchange=amq.topic"),
        ("POST", f"/transactions/q/{quoted('0' + DROP)}?exchange=amq.topic"),
    ],
)
def test_where_a_number_belongs_it_is_refused(http: httpx.Client, method: str, path: str) -> None:
    assert http.put("/endpoint/q/log?durable=true&arg.x-queue-type=stream").is_success
    media_type = {"Content-Type": "application/vnd.warren.rows"}
    content = ROWS if method == "PUT" else None
    assert http.request(method, path, content=content, headers=media_type).status_code == 400
