"""`warren serve` as a process: listeners, ready line, exit codes, signals."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import httpx
import pika
import pika.exceptions
import pytest

from tests.support.process import wait_until
from tests.support.server import WarrenServer, warren_command
from warrenmq.app.file_limit import ROOM
from warrenmq.hub.storage.schema import DATABASE_NAME, HEAD

FIELDS = "Host: localhost\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `warren serve` that is expected to refuse to start."""
    clean = {name: value for name, value in os.environ.items() if "WARREN" not in name}
    return subprocess.run(
        [*warren_command(), "serve", *arguments],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=20,
    )


def refused(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 2, result
    assert result.stderr.startswith("warren: ")
    assert result.stderr.count("\n") == 1, result.stderr
    assert "ready" not in result.stdout
    return result.stderr


def test_lines_at_start(tmp_path: Path) -> None:
    with WarrenServer(dev=True) as server:
        lines = server.output().splitlines()
    assert lines[0] == f"listening on amqp://127.0.0.1:{server.amqp_port}"
    assert lines[1] == f"listening on http://127.0.0.1:{server.http_port}"
    assert lines[2].startswith("development mode")
    assert lines[3].startswith("memory limit: ")
    assert lines[4].startswith("disk free limit: ")
    assert lines[5].startswith("ready")


def test_free_ports_are_told(tmp_path: Path) -> None:
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
        assert lines[-2:] == ["stopping: what is under way has 10 s", "stopped"]


def test_request_under_way_is_finished() -> None:
    with WarrenServer() as server:
        connection = socket.create_connection((server.host, server.http_port), timeout=20)
        head = f"PUT /endpoint/q/a HTTP/1.1\r\n{FIELDS}"
        connection.sendall(head.encode() + b"\r\n")
        made = b""
        while not made.endswith(b"}\n"):
            made += connection.recv(4096)
        assert made.startswith(b"HTTP/1.1 201")
        post = head.replace("PUT", "POST") + "Content-Length: 2\r\n\r\na"
        connection.sendall(post.encode())
        probe = httpx.Client(base_url=server.http_url)
        assert probe.get("/health/ready").status_code == 200
        probe.close()
        os.kill(server.pid, signal.SIGTERM)

        def refuses() -> bool:
            try:
                socket.create_connection((server.host, server.http_port), timeout=1).close()
            except OSError:
                return True
            return False

        wait_until(refuses, 10, "the listener's end")
        connection.sendall(b"b")
        assert connection.recv(4096).startswith(b"HTTP/1.1 202")
        connection.close()
        assert server.process.wait(20) == 0


def test_all_parts_stop_together() -> None:
    """An AMQP client is told at once, though a request under way is still waited for."""
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
        assert "WARNING" not in server.output()  # for a client that is closed by a stop
        upload.sendall(b"ab")
        assert upload.recv(4096).startswith(b"HTTP/1.1 404")
        upload.close()
        assert server.process.wait(20) == 0


def test_what_takes_longer_than_the_drain_is_cut_off() -> None:
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


def test_second_process_on_the_same_data() -> None:
    with WarrenServer() as server:
        ports = ["--amqp-port", "0", "--http-port", "0"]
        complaint = refused(run("--data", str(server.data), *ports))
        assert f"in use by another process (pid {server.pid})" in complaint
        assert server.running


@pytest.mark.parametrize("which", ["amqp", "http"])
def test_port_in_use(tmp_path: Path, which: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = {"amqp": "0", "http": "0", which: str(taken.getsockname()[1])}
        flags = [flag for name, port in ports.items() for flag in (f"--{name}-port", port)]
        complaint = refused(run("--data", str(tmp_path), "--host", "127.0.0.1", *flags))
    assert ports[which] in complaint


def test_bad_configuration(tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text("prot = 1\n")
    assert "unknown setting prot" in refused(run("--config", str(file)))
    assert "WARREN_PROT" in refused(run(WARREN_PROT="1"))
    assert "--prot" in refused(run("--prot", "1"))
    file.chmod(0o644)
    assert "data directory" in refused(run("--data", str(file / "below")))


def test_default_user() -> None:
    environment = {"WARREN_DEFAULT_USER": "admin", "WARREN_DEFAULT_PASS": "s3cret:x"}
    with WarrenServer(env=environment) as server:
        url = f"{server.http_url}/endpoint/x/amq.topic"
        assert httpx.get(url, auth=("admin", "s3cret:x")).status_code == 200
        assert httpx.get(url, auth=("guest", "guest")).status_code == 401


def test_default_user_of_a_directory_that_exists_is_told_to_have_no_effect(tmp_path: Path) -> None:
    given = {"WARREN_DEFAULT_USER": "admin", "WARREN_DEFAULT_PASS": "s3cret:x"}
    others: list[tuple[dict[str, str], str]] = [
        ({**given, "WARREN_DEFAULT_PASS": "hunter-2"}, "user 'admin' has another password"),
        ({"WARREN_DEFAULT_PASS": "hunter-2"}, "it has no user 'guest'"),
        (given, ""),
        ({}, ""),
    ]
    with WarrenServer(env=given, data=tmp_path / "data") as server:
        assert "no effect" not in server.output()
    for environment, reason in others:
        with WarrenServer(env=environment, data=tmp_path / "data") as server:
            server.stop()
            told = [line for line in server.output().splitlines() if "have no effect" in line]
            assert ("WARNING" in "".join(told), len(told)) == (bool(reason), bool(reason))
            assert reason in "".join(told)
            assert "hunter-2" not in server.output()


def test_settings_reach_the_broker() -> None:
    args = ["--strict-arguments", "--segment-bytes=1MiB", "--channel-max=3"]
    with WarrenServer(args=args, env={"WARREN_CONSUMER_TIMEOUT": "0"}) as server:
        connection = pika.BlockingConnection(pika.URLParameters(server.amqp_url))
        assert connection._impl.params.channel_max == 3
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refusal:
            connection.channel().queue_declare("q", arguments={"x-stray": 1})
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
    """Connections of a running server must not wait for the kernel to make it."""
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


def test_subscribing_is_prepared_behind_ready() -> None:
    """The first subscribe would wait for imports and migrations otherwise."""
    with WarrenServer() as server:
        assert "ready" in server.output()
        path = server.data / DATABASE_NAME

        def is_prepared() -> bool:
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
                try:
                    return database.execute("SELECT * FROM alembic_version").fetchall() == [(HEAD,)]
                except sqlite3.OperationalError:  # not there yet
                    return False

        wait_until(lambda: path.exists() and is_prepared(), 20, "the hub's tables")


def test_nothing_heavy_is_imported_to_start() -> None:
    """They take longer than all the rest: what needs them imports them then."""
    code = (
        "import sys;import warrenmq.app.lifespan;"
        "heavy = ('sqlalchemy', 'alembic', 'aiohttp', 'httpx', 'argon2', 're2');"
        "print(*[name for name in heavy if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.split() == [], result.stderr
