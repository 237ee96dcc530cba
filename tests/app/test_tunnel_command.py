"""`warren tunnel` between a real hub and a real local server."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.app.routes.test_reversehttp import counted
from tests.app.support import warren
from tests.support.http import Answer, Callback
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.server import WarrenServer, warren_command
from tests.support.tunnels import TOKEN, Tunnels
from warrenmq.app.commands.tunnel_agent import POLLS


class Command:
    """A running `warren tunnel`."""

    def __init__(self, hub: WarrenServer, path: Path, *arguments: str, port: int) -> None:
        self._path = path
        clean = {name: value for name, value in os.environ.items() if "WARREN" not in name}
        command = [*warren_command(), "tunnel", str(port), "--url", hub.http_url, *arguments]
        with path.open("wb") as output:
            self.process = subprocess.Popen(
                command, env={**clean, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.PIPE, stdout=output, stderr=output,
            )  # fmt: skip
        self.wait(f" -> http://127.0.0.1:{port}")

    def output(self) -> str:
        return self._path.read_text()

    def wait(self, part: str) -> None:
        """Waits until it has printed this."""
        wait_until(lambda: part in self.output(), 20.0, f"'{part}' in: {self.output()}")

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def end(self) -> int:
        """Waits until it has ended; returns the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(20.0)

    def stop(self) -> int:
        self.process.terminate()
        return self.end()


@pytest.fixture
def hub() -> Iterator[WarrenServer]:
    with WarrenServer(env={"WARREN_TUNNEL_POLL_HOLD_S": "1"}) as hub:
        yield hub


@pytest.fixture
def public(hub: WarrenServer) -> Iterator[Tunnels]:
    found = Tunnels(hub.http_port)
    yield found
    found.close()


def test_a_local_server_gets_a_public_url(
    hub: WarrenServer, public: Tunnels, callback: Callback, tmp_path: Path
) -> None:
    url = f"http://ada.tun.localhost:{hub.http_port}/"
    callback.default = Answer(201, {"X-Mine": "1"}, b"made")
    command = Command(hub, tmp_path / "output", "--label", "ada", port=callback.port)
    # Enough polls, so that requests at a time don't wait for each other.
    counted(public, "ada", waiting_polls=POLLS)
    answer = public.ask("POST", f"{url}a?b=c", "X-Given: 2", body=b"\x00\xff")
    assert (answer.status, answer.body, answer.fields["x-mine"]) == (201, b"made", "1")
    (request,) = callback.requests
    assert (request.raw_path, request.body, request.headers["x-given"]) == (
        "/a?b=c",
        b"\x00\xff",
        "2",
    )
    command.wait("POST /a?b=c  201  ")
    hub.restart()
    assert public.ask("GET", url).status == 201
    command.wait("connected again")
    assert command.stop() == 0
    assert "stopped" in command.output()
    assert public.ask("GET", url).status == 410


def test_requests_are_shown_and_replayed(
    hub: WarrenServer, public: Tunnels, callback: Callback, tmp_path: Path
) -> None:
    callback.default = Answer(201, {}, b"made")
    command = Command(hub, tmp_path / "output", "--label", "ada", port=callback.port)
    public.ask("POST", f"http://ada.tun.localhost:{hub.http_port}/a", body=b"gr\xc3\xbc\xc3\x9fe")
    command.wait("  1  POST /a  201  ")
    command.type("show 1")
    command.wait("\nContent-Length: 7\n\ngrüße\n\nHTTP/1.1 201 ")
    command.wait("\n\nmade\n")
    command.type("r 1")
    command.wait("  2  POST /a  201  ")
    assert [(one.path, one.body.decode()) for one in callback.requests] == [("/a", "grüße")] * 2
    for line, found in (("list", " ms  1 again\n"), ("show 7", "no request 7"), ("x", "type 'l")):
        command.type(line)
        command.wait(found)
    assert command.stop() == 0


def test_a_random_label_and_a_server_that_is_away(
    hub: WarrenServer, public: Tunnels, tmp_path: Path
) -> None:
    command = Command(hub, tmp_path / "output", port=free_port())
    url = re.search(r"http://[0-9a-f]{32}\.tun\.localhost:\d+/", command.output())
    assert url is not None
    answer = public.ask("GET", url[0])
    assert answer.status == 502
    assert b"no answer from 127.0.0.1" in answer.body
    command.wait("GET /  502  ")
    assert command.stop() == 0


def test_a_token_keeps_the_label(
    hub: WarrenServer, public: Tunnels, callback: Callback, tmp_path: Path
) -> None:
    url = f"http://kept.tun.localhost:{hub.http_port}/"
    arguments = ("--label", "kept", "--label-token", TOKEN)
    for name in ("first", "second"):
        command = Command(hub, tmp_path / name, *arguments, port=callback.port)
        assert public.ask("GET", url).status == 200
        assert command.stop() == 0


def test_somebody_else_releases_the_label(
    hub: WarrenServer, callback: Callback, tmp_path: Path
) -> None:
    command = Command(hub, tmp_path / "output", "--label", "ada", port=callback.port)
    path = f"{hub.http_url}/api/hub/tunnels/ada"
    assert httpx.delete(path, auth=("guest", "guest")).status_code == 204
    assert command.end() == 4
    assert "refuses 'ada': label: was released" in command.output()


def test_refusals(hub: WarrenServer, public: Tunnels) -> None:
    public.enrol("taken")
    text = end(4, "8000", "--label", "taken", "--hub", hub.http_url)
    assert "refuses 'taken': name: is enrolled with another token; free if no poll" in text
    assert "localhost: give http://" in end(2, "8000", "--hub", "localhost")
    assert warren("tunnel", "0").returncode == 2
    assert "can't be reached" in end(5, "8000", "--url", f"http://127.0.0.1:{free_port()}")
    with Callback() as other:
        url = f"http://127.0.0.1:{other.port}"
        assert "no ReverseHttp gateway" in end(5, "8000", "--url", url)
        for status in (301, 404, 501):
            other.default = Answer(status)
            assert f"is no Warren: {status}" in end(5, "8000", "--url", url)


def end(code: int, *arguments: str) -> str:
    """Runs a command that ends at once; returns its one line on stderr."""
    result = warren("tunnel", *arguments)
    assert (result.returncode, result.stderr.count("\n")) == (code, 1), result
    return result.stderr


def test_a_login(tmp_path: Path, callback: Callback) -> None:
    with WarrenServer(dev=False, env={"WARREN_ALLOW_GUEST": "1"}) as hub:
        assert "credentials are needed" in end(4, "8000", "--hub", hub.http_url)
        guest = httpx.Client(base_url=hub.http_url, auth=("guest", "guest"))
        wanted = {"name": "t", "scopes": [{"tunnel": "x"}], "expires_in_s": 60}
        token = guest.post("/api/hub/tokens", json=wanted).json()["token"]
        for number, login in enumerate(
            (("--user", "guest", "--password", "guest"), ("--token", token))
        ):
            path = tmp_path / str(number)
            command = Command(hub, path, *login, "--label", "x", port=callback.port)
            listed = guest.get("/reversehttp").json()["tunnels"]
            assert [one["owner"] for one in listed] == ["guest"]
            assert command.stop() == 0
        guest.close()


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", b"ab"),
        (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n",
            b"ab",
        ),
    ],
)
def test_a_local_server_that_keeps_its_connection_open(
    hub: WarrenServer, public: Tunnels, tmp_path: Path, answer: bytes, body: bytes
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as local:
        command = Command(hub, tmp_path / "output", "--label", "ada", port=local.getsockname()[1])
        asked = public.begin("GET", f"http://ada.tun.localhost:{hub.http_port}/")
        connection, _ = local.accept()
        with connection:
            connection.sendall(answer)
            found = asked.read()
            assert (found.status, found.body) == (200, body)
        assert command.stop() == 0
