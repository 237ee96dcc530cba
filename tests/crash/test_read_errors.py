"""The disk can't read a part of the log: a server starts, stays, serves the rest and says so
wherever an operator looks."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.process import wait_until
from tests.support.server import WarrenServer, warren_command

from .faults import injected, unreadable
from .support import Sender, depth, drain, numbers

pytestmark = pytest.mark.promise

COUNT = 100
FIRST_BLOCK = "2..11"
"""Reads of a file of 1 MiB: its header, all of it, twice, and halves of that down to 4 KiB."""


def filled(data: Path) -> Path:
    """Data of a server that was killed, and the segment that holds queue `q`; the definitions
    are in another one."""
    with WarrenServer(data=data) as server, Sender(server, "q"):
        server.stop()
        before = set(data.glob("log/*.log"))
        server.start()
        with Sender(server, "q", size=2_000) as sender:
            sender.publish(COUNT, at_once=1)
        server.kill()
    (segment,) = set(data.glob("log/*.log")) - before
    return segment


def warren(*arguments: str, under: list[str]) -> subprocess.CompletedProcess[str]:
    command = [*under, *warren_command(), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def asked(server: WarrenServer, path: str, status: int = 200) -> Any:
    answer = httpx.get(server.http_url + path, auth=("guest", "guest"))
    assert answer.status_code == status, answer.text
    return answer.json()


def assert_told(server: WarrenServer, name: str) -> None:
    assert asked(server, "/health/ready")["status"] == "ok"
    assert "can't be read" in asked(server, "/health/ready")["warnings"][0]
    assert name in asked(server, "/api/health/checks/storage", 503)["reason"]
    assert [one["name"] for one in asked(server, "/api/warren/quarantine")["unreadable"]] == [name]


def assert_untroubled(server: WarrenServer) -> None:
    assert asked(server, "/health/ready") == {"status": "ok", "warnings": []}
    assert asked(server, "/api/health/checks/storage") == {"status": "ok"}


def test_sectors_unreadable_at_a_start_are_fenced_and_reported(tmp_path: Path) -> None:
    segment = filled(tmp_path / "data")
    raw, data = segment.read_bytes(), ("--data", str(tmp_path / "data"))

    checked = warren("verify", *data, under=unreadable(segment, "1+"))
    assert f"{segment.name}: 0 records" in checked.stdout and checked.returncode == 1
    assert "it is partly unreadable: Input/output error" in checked.stdout
    listed = warren("repair", "list", *data, under=unreadable(segment, "1+"))
    assert listed.stdout.startswith(f"{segment.name}: partly unreadable: Input/output error")

    command = [*unreadable(segment, FIRST_BLOCK), *warren_command()]
    with WarrenServer(data=tmp_path / "data", command=command) as server:
        assert f"{segment.name}: partly unreadable: Input/output error" in server.output()
        assert_told(server, segment.name)
        found = numbers(drain(server, "q"))
        assert COUNT - 4 <= len(found) < COUNT and found == sorted(found)
        with Sender(server, "q", first=1_000) as sender:
            assert len(sender.publish(10).confirmed) == 10
        server.kill()
    with WarrenServer(data=tmp_path / "data") as server:
        assert_told(server, segment.name)
        assert numbers(drain(server, "q")) == list(range(1_000, 1_010))
        assert server.stop() == 0
        assert segment.read_bytes() == raw
        assert warren("repair", "discard", segment.name, *data, under=[]).returncode == 0
        server.start()
        assert_untroubled(server)


def test_sectors_unreadable_while_running_are_reported_and_kept(tmp_path: Path) -> None:
    segment = filled(tmp_path / "data")
    with WarrenServer(data=tmp_path / "data") as server:
        with Sender(server, "other") as sender:
            sender.publish(10)
        server.restart()
        assert_untroubled(server)
        with injected(server, "pread64", "error=EIO:when=1+", tmp_path, segment) as injection:
            with Sender(server, "q") as reader:
                reader.client.consume("q", "c", no_ack=False, prefetch=1)
                wait_until(lambda: injection.fired > 0, 20.0, "a read that fails")
                wait_until(lambda: depth(server, "q") == 0, 20.0, "the end of what can't be read")
            assert_told(server, segment.name)
            assert len(numbers(drain(server, "other"))) == 10
        assert "Traceback" not in server.output()
        server.restart()
        assert_untroubled(server)
        assert numbers(drain(server, "q")) == list(range(COUNT))
