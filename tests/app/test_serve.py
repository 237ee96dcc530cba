"""`warren serve` as a process: listeners, ready line, exit codes, signals."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pika
import pika.exceptions
import pytest

from tests.app.support import refusal
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from warrenmq.app.file_limit import ROOM
from warrenmq.hub.service import KEY_NAME
from warrenmq.hub.storage.schema import DATABASE_NAME

FIELDS = "Host: localhost\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n"


def test_lines_at_start(tmp_path: Path) -> None:
    with WarrenServer(dev=True) as server:
        lines = server.output().splitlines()
    assert lines[0] == f"listening on amqp://127.0.0.1:{server.amqp_port}"
    assert lines[1] == f"listening on http://127.0.0.1:{server.http_port}"
    assert lines[2].startswith("development mode")
    assert lines[3].startswith("memory limit: ")
    assert lines[4].startswith("disk free limit: ")
    assert lines[5].startswith("ready")


def test_chosen_ports_are_printed(tmp_path: Path) -> None:
    args = ["--http-port", "0", "--amqp-port", "0", "--allow-guest"]
    with WarrenServer(dev=False, args=args) as server:
        http = next(line for line in server.output().splitlines() if "http://" in line)
        base_url = http.removeprefix("listening on ")
        assert not base_url.endswith(":0")
        assert httpx.get(f"{base_url}/health/ready").status_code == 200
        made = httpx.put(f"{base_url}/endpoint/q/a", auth=("guest", "guest"))
        assert made.headers["location"] == f"{base_url}/endpoint/q/a"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stops_cleanly(number: signal.Signals) -> None:
    with WarrenServer() as server, httpx.Client(base_url=server.http_url) as client:
        assert client.get("/health/live").status_code == 200  # and stays connected
        os.kill(server.pid, number)
        assert server.process.wait(20) == 0
        assert "Traceback" not in server.output()
        lines = server.output().splitlines()
        assert lines[-2:] == ["stopping: requests in progress have 10 s", "stopped"]


def test_all_parts_stop_together() -> None:
    with WarrenServer() as server:
        upload = socket.create_connection((server.host, server.http_port), timeout=20)
        head = f"POST /endpoint/q/a HTTP/1.1\r\n{FIELDS}"
        upload.sendall(head.encode() + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert upload.recv(4096).startswith(b"HTTP/1.1 100")
        connection = pika.BlockingConnection(pika.URLParameters(server.amqp_url))
        os.kill(server.pid, signal.SIGTERM)
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            connection.process_data_events(time_limit=20)
        assert closed.value.reply_code == 320
        assert server.running
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((server.host, server.http_port), timeout=1)
        assert "WARNING" not in server.output()  # for a client that is closed by a stop
        upload.sendall(b"ab")
        assert upload.recv(4096).startswith(b"HTTP/1.1 404")
        upload.close()
        assert server.process.wait(20) == 0


def test_requests_are_cancelled_after_the_drain_time() -> None:
    with WarrenServer(env={"WARREN_DRAIN_S": "0.2"}) as server:
        upload = socket.create_connection((server.host, server.http_port), timeout=20)
        head = f"POST /endpoint/q/a HTTP/1.1\r\n{FIELDS}"
        upload.sendall(head.encode() + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert upload.recv(4096).startswith(b"HTTP/1.1 100")
        os.kill(server.pid, signal.SIGTERM)
        answer = upload.recv(4096)
        upload.close()
        assert answer.startswith(b"HTTP/1.1 500"), answer
        assert server.process.wait(20) == 0


@pytest.mark.parametrize("which", ["amqp", "http"])
def test_port_in_use(tmp_path: Path, which: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = {"amqp": "0", "http": "0", which: str(taken.getsockname()[1])}
        flags = [flag for name, port in ports.items() for flag in (f"--{name}-port", port)]
        complaint = refusal("serve", "--data", str(tmp_path), "--host", "127.0.0.1", *flags)
    assert ports[which] in complaint


def test_bad_configuration(tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text("prot = 1\n")
    assert "unknown setting prot" in refusal("serve", "--config", str(file))
    assert "WARREN_PROT" in refusal("serve", WARREN_PROT="1")
    assert "--prot" in refusal("serve", "--prot", "1")
    file.chmod(0o644)
    assert "data directory" in refusal("serve", "--data", str(file / "below"))


def test_settings_reach_the_broker() -> None:
    args = ["--strict-arguments", "--segment-bytes=1MiB", "--channel-max=3"]
    with WarrenServer(args=args, env={"WARREN_CONSUMER_TIMEOUT": "0"}) as server:
        connection = pika.BlockingConnection(pika.URLParameters(server.amqp_url))
        channel, *_ = [connection.channel() for _ in range(3)]
        with pytest.raises(pika.exceptions.NoFreeChannels):
            connection.channel()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refusal:
            channel.queue_declare("q", arguments={"x-stray": 1})
        assert refusal.value.reply_code == 406
        connection.close()


def test_open_files_are_raised() -> None:
    code = (
        "import resource;from warrenmq.app.file_limit import raise_file_limit;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 256));"
        "print(raise_file_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.split() == ["256", "256", "256"], result.stderr


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells of it")
def test_there_is_room_for_open_files_before_they_come() -> None:
    with WarrenServer() as server:
        status = Path(f"/proc/{server.pid}/status").read_text()
        limit = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)[0]
        highest = max(int(name) for name in os.listdir(f"/proc/{server.pid}/fd"))
    [room] = re.findall(r"^FDSize:\s*(\d+)", status, re.MULTILINE)
    assert int(room) >= min(limit, ROOM)
    assert highest < 256


def test_guest_over_http_without_dev() -> None:
    """What HAProxy passes on by default looks like a request of this machine."""
    with WarrenServer(dev=False) as server:
        url, guest = f"{server.http_url}/api/whoami", ("guest", "guest")
        assert httpx.get(url, auth=guest).status_code == 401
        assert "WARREN_ALLOW_GUEST=1" in server.output()
        pika.BlockingConnection(pika.URLParameters(server.amqp_url)).close()
    with WarrenServer(dev=False, env={"WARREN_ALLOW_GUEST": "1"}) as server:
        assert httpx.get(f"{server.http_url}/api/whoami", auth=guest).status_code == 200


def test_a_server_that_is_only_a_broker_opens_no_database() -> None:
    """It needs neither the memory for that nor the processor time."""
    with WarrenServer() as server:
        key = server.data / KEY_NAME
        wait_until(key.exists, 30, "the hub's key, with which it begins to prepare itself")
        server.settle()
        assert not (server.data / DATABASE_NAME).exists()


def test_nothing_heavy_is_imported_to_start() -> None:
    code = (
        "import sys;import warrenmq.app.lifespan;"
        "heavy = ('sqlalchemy', 'alembic', 'aiohttp', 'httpx', 'argon2', 'pcre2', 're2');"
        "print(*[name for name in heavy if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.split() == [], result.stderr
