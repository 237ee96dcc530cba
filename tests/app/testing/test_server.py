"""`Warren`, as a test suite of others uses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pika
import pytest

from tests.support.ports import free_port
from tests.support.process import wait_until
from warrenmq import Warren

KILLED = """
import os, signal
from warrenmq import Warren

with Warren(data={data!r}) as warren:
    print(warren.http_url, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
WAIT_S = 60.0


def is_served(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/live").is_success
    except httpx.TransportError:
        return False


def test_a_virtual_host_of_its_own(tmp_path: Path) -> None:
    with Warren.run(data=tmp_path / "data", settings={"max_message_bytes": 10}) as warren:
        with warren.vhost() as vhost:
            with pika.BlockingConnection(pika.URLParameters(vhost.amqp_url)) as connection:
                connection.channel().queue_declare("q")
            path, guest = f"{vhost.http_url}/endpoint/q/q", ("guest", "guest")
            assert httpx.post(path, content=b"1234567890", auth=guest).status_code == 202
            assert httpx.post(path, content=b"12345678901", auth=guest).status_code == 413
        names = httpx.get(f"{warren.http_url}/api/vhosts", auth=guest).json()
        assert [one["name"] for one in names] == ["/"]
        url = warren.http_url
    assert not is_served(url)
    assert (tmp_path / "data" / "log").is_dir(), "a directory that was given stays"


def test_the_server_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    program = KILLED.format(data=str(tmp_path / "data"))
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT_S
    )
    url = found.stdout.strip()
    assert url.startswith("http://127.0.0.1:"), found.stderr
    wait_until(lambda: not is_served(url), WAIT_S, "the server is gone")


def test_a_failed_start_raises_the_reason() -> None:
    with pytest.raises(RuntimeError, match="unknown setting WARREN_SOME"):
        Warren(settings={"some": 1}).start()
    with pytest.raises(ValueError, match="'host' can't be set here: a test server listens on 127"):
        Warren(settings={"host": "0.0.0.0"})


def test_a_port_of_choice_beside_files_named_as_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secrets.py").write_text("raise ImportError('of the project')\n")
    monkeypatch.chdir(tmp_path)
    port = free_port()
    with Warren(settings={"http_port": port}) as warren:
        assert warren.http_url == f"http://127.0.0.1:{port}"
        assert is_served(warren.http_url)
