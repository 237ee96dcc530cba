"""Data directories of earlier versions open with all that is in them; those of newer ones don't."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import struct
import subprocess
import tarfile
import time
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.server import WarrenServer, warren_command
from warrenmq.core import VERSION
from warrenmq.core.store.record import FILE_HEADER_BYTES, FORMAT_VERSION

from .content import ANN, GUEST, add, shown
from .make import EXPECTED, FIXTURES, MAX_BYTES

ARCHIVES = sorted(FIXTURES.glob("*.tar.xz"))
OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
NEWER = "start the newer one that wrote it"


def unpacked(archive: Path, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The data directory as if it had been written now, and what it has to show."""
    with tarfile.open(archive) as found:
        found.extractall(folder, filter="data")
    expected: dict[str, Any] = json.loads((folder / EXPECTED).read_text())
    database = folder / "data" / "hub.sqlite3"
    with closing(sqlite3.connect(database)) as connection, connection:
        passed_s = time.time() - (folder / EXPECTED).stat().st_mtime
        for table in ("tokens", "subscriptions"):
            connection.execute(f"UPDATE {table} SET expires_at = expires_at + ?", (passed_s,))
    return folder / "data", expected


def test_there_is_one_of_this_version() -> None:
    assert f"{VERSION}.tar.xz" in [archive.name for archive in ARCHIVES]
    assert max(archive.stat().st_size for archive in ARCHIVES) < MAX_BYTES


def test_going_back_and_forth(tmp_path: Path) -> None:
    """The lines of docs/operations.md, and a start of what they leave."""
    data, expected = unpacked(ARCHIVES[-1], tmp_path)
    database = data / "hub.sqlite3"
    programs = re.findall(r"```python\n(.*?)```", OPERATIONS.read_text(), re.DOTALL)
    (lines,) = (one for one in programs if "downgrade" in one)
    exec(lines.replace("/var/lib/warren/hub.sqlite3", str(database)), {})
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [
            ("0014",)
        ]
    with WarrenServer(data=data) as server:
        assert_contains(shown(server, expected["secrets"]), expected["shown"])


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_everything_is_there(archive: Path, tmp_path: Path) -> None:
    data, expected = unpacked(archive, tmp_path)
    secrets = expected["secrets"]
    with WarrenServer(data=data) as server:
        assert_contains(shown(server, secrets), expected["shown"])
        who = httpx.get(f"{server.http_url}/api/whoami", auth=ANN).json()
        assert who == {"name": "ann", "tags": ["monitoring"]}
        add(server)
        server.restart()
        (orders,) = [
            one for one in httpx.get(f"{server.http_url}/api/queues", auth=GUEST).json()
            if one["name"] == "orders"
        ]  # fmt: skip
        before = [one for one in expected["shown"]["queues"] if one["name"] == "orders"]
        assert orders["messages"] == before[0]["messages"] + 1
    assert "damaged" not in server.output()


def assert_contains(found: Any, expected: Any, place: str = "") -> None:
    """A newer version may show more of an object, and nothing else."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert key in found, f"{place}: {key} is missing"
            assert_contains(found[key], value, f"{place}/{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), (place, found, expected)
        for position, value in enumerate(expected):
            assert_contains(found[position], value, f"{place}/{position}")
    else:
        assert found == expected, place


def a_newer_log(data: Path) -> None:
    log = sorted((data / "log").glob("*.log"))[-1]
    raw = bytearray(log.read_bytes())
    raw[8:12] = struct.pack("<I", FORMAT_VERSION + 1)
    end = FILE_HEADER_BYTES - 4
    raw[end:FILE_HEADER_BYTES] = struct.pack("<I", zlib.crc32(bytes(raw[:end])))
    log.write_bytes(raw)


def a_newer_database(data: Path) -> None:
    with closing(sqlite3.connect(data / "hub.sqlite3")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")


@pytest.mark.parametrize("change", [a_newer_log, a_newer_database])
def test_a_newer_one_is_refused(change: Callable[[Path], None], tmp_path: Path) -> None:
    data, _ = unpacked(ARCHIVES[-1], tmp_path)
    change(data)
    before = digests(data)
    refused = subprocess.run(
        [*warren_command(), "serve", "--data", str(data), "--http-port", "0", "--amqp-port", "0"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    last = refused.stderr.splitlines()[-1]
    assert (refused.returncode, NEWER in last) == (2, True), refused.stderr
    assert digests(data) == before


PASSING = ("lock", "reserve", "hub.sqlite3-shm", "hub.sqlite3-wal")
"""Files that come with a look at the data, and say nothing."""


def digests(data: Path) -> dict[str, str]:
    return {
        str(path.relative_to(data)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in data.rglob("*")
        if path.is_file() and path.name not in PASSING
    }
