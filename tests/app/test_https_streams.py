"""`/stream` and tunnels over https: of the server itself, and of a proxy in front of it."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.certificates import Authority
from tests.support.http import Answer, Callback
from tests.support.ports import free_port
from tests.support.process import terminate, wait_until
from tests.support.server import WarrenServer, warren_command
from tests.support.streams import LiveSocket, LiveStream
from tests.support.tls_proxy import TlsProxy
from tests.support.tunnels import Tunnels
from warrenmq.app.cli import run

WAIT_S = 60.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls(authority: Authority) -> ssl.SSLContext:
    return authority.client_context()


@pytest.fixture(scope="module")
def server(authority: Authority) -> Iterator[WarrenServer]:
    cert, key = authority.issue("localhost", "127.0.0.1")
    args = [f"--https-port={free_port()}", f"--tls-cert={cert}", f"--tls-key={key}"]
    with WarrenServer(args=args) as server:
        httpx.put(f"{server.http_url}/endpoint/x/news", auth=("guest", "guest")).raise_for_status()
        yield server


def own_url(server: WarrenServer) -> str:
    """The https URL of the server itself."""
    [line] = [line for line in server.output().splitlines() if " https://" in line]
    return "https://localhost:" + line.rpartition(":")[2]


@pytest.fixture(params=["own", "proxy"])
def hub(
    request: pytest.FixtureRequest, server: WarrenServer, authority: Authority
) -> Iterator[str]:
    """The https URL of the server."""
    if request.param == "own":
        yield own_url(server)
        return
    with TlsProxy(server.http_port, *authority.issue("localhost", file="proxy")) as proxy:
        yield f"https://localhost:{proxy.port}"


def publish(server: WarrenServer, body: str) -> None:
    url = f"{server.http_url}/endpoint/x/news"
    httpx.post(url, content=body, auth=("guest", "guest")).raise_for_status()


@pytest.fixture
def environment(authority: Authority) -> dict[str, str]:
    """Of a command that trusts the authority."""
    clean = {name: value for name, value in os.environ.items() if "WARREN" not in name}
    return {**clean, "SSL_CERT_FILE": authority.file, "PYTHONUNBUFFERED": "1"}


def test_events(server: WarrenServer, hub: str, tls: ssl.SSLContext) -> None:
    with LiveStream(f"{hub}/stream/x/news", tls, sse=True) as stream:
        for number in "12":
            publish(server, number)
            assert stream.next()["data"]["body"] == number


def test_websocket(server: WarrenServer, hub: str, tls: ssl.SSLContext) -> None:
    with LiveSocket(f"{hub}/stream/x/news", tls) as socket:
        socket.send({"publish": {"body": "1"}, "ref": 1})
        found = socket.take(2)
    assert {"confirmed": 1} in found
    assert "1" in [one.get("body") for one in found]


def test_listen(server: WarrenServer, hub: str, environment: dict[str, str]) -> None:
    httpx.put(
        f"{server.http_url}/endpoint/q/log?arg.x-queue-type=stream", auth=("guest", "guest")
    ).raise_for_status()
    httpx.post(f"{server.http_url}/endpoint/q/log", content="1", auth=("guest", "guest"))
    command = [*warren_command(), "listen", "q", "log", "--cursor=first", "--count=1"]
    ended = subprocess.run(
        [*command, f"--hub={hub}"], env=environment, capture_output=True, check=True, timeout=WAIT_S
    )
    assert json.loads(ended.stdout)["body"] == "1"


def test_a_hub_that_does_not_know_its_proxy(
    server: WarrenServer, authority: Authority, environment: dict[str, str]
) -> None:
    """Its links would have tokens sent unencrypted."""
    with TlsProxy(server.http_port, *authority.issue("localhost", file="unknown")) as proxy:
        hub = f"https://localhost:{proxy.port}"
        ended = subprocess.run(
            [*warren_command(), "tunnel", "1", f"--hub={hub}"],
            env=environment, capture_output=True, check=False, text=True, timeout=WAIT_S,
        )  # fmt: skip
    assert ended.returncode == 2
    assert f"set public_url there to {hub}" in ended.stderr


@pytest.fixture(params=["own", "proxy"])
def gateway(
    request: pytest.FixtureRequest, server: WarrenServer, authority: Authority
) -> Iterator[tuple[WarrenServer, str]]:
    """A server with its https URL; behind a proxy it has to know that, for its links."""
    if request.param == "own":
        yield server, own_url(server)
        return
    port = free_port()
    url = f"https://localhost:{port}"
    with (
        WarrenServer(env={"WARREN_PUBLIC_URL": url}) as behind,
        TlsProxy(behind.http_port, *authority.issue("localhost", file="front"), port=port),
    ):
        yield behind, url


def test_tunnel(
    gateway: tuple[WarrenServer, str],
    environment: dict[str, str],
    callback: Callback,
    tmp_path: Path,
) -> None:
    server, url = gateway
    callback.default = Answer(200, {}, b"made")
    command = [*warren_command(), "tunnel", str(callback.port), "--label=ada", f"--hub={url}"]
    output = tmp_path / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
    public = Tunnels(server.http_port)
    try:
        wait_until(lambda: b" -> http://" in output.read_bytes(), WAIT_S, "the public URL")
        assert public.ask("GET", "http://ada.tun.localhost/").body == b"made"
    finally:
        public.close()
        terminate(process, WAIT_S)


def test_a_command_says_why_tls_does_not_work(
    server: WarrenServer, capsys: pytest.CaptureFixture[str]
) -> None:
    own, plain = own_url(server), server.http_url.replace("http:", "https:")
    for url, reason in ((own, "SSL_CERT_FILE"), (plain, "write http://")):
        assert run(["vhost", "list", "--url", url]) == 5
        assert reason in capsys.readouterr().err
