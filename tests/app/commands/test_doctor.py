"""`warren doctor`: what it finds, and what it says to do."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pika
import pytest
from aiohttp import web

from tests.support.http import Callback, ThreadedServer
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from warrenmq.app.cli import run
from warrenmq.core import VERSION

GUEST = ("guest", "guest")
WAIT_S = 60.0
ANSWERS: dict[str, Any] = {
    "/api/overview": {"product_name": "Warren", "product_version": "0.0.1"},
    "/api/whoami": {"name": "guest"},
    "/api/nodes": [{"mem_alarm": True, "disk_free_alarm": False, "fd_used": 9, "fd_total": 10}],
    "/api/channels": {"items": [], "page_count": 1},
    "/api/hub/subscriptions": {"subscriptions": [], "page_count": 1},
}


class IllServer(ThreadedServer):
    """Answers as a server would at which everything is wrong."""

    async def _handle(self, request: web.Request) -> web.Response:
        headers = {"Date": "Thu, 01 Jan 2026 00:00:00 GMT"}
        if request.path not in ANSWERS:
            problem = {"detail": "it is damaged"}
            return web.json_response(problem, status=503, headers=headers)
        return web.json_response(ANSWERS[request.path], headers=headers)


@pytest.fixture(scope="module")
def warren() -> Iterator[WarrenServer]:
    with WarrenServer(env={"WARREN_MAX_ATTEMPTS": "1"}) as server:
        yield server


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, no_login: Path) -> None:
    """The ports of settings are free."""
    for name in ("AMQP", "HTTP"):
        monkeypatch.setenv(f"WARREN_{name}_PORT", str(free_port()))
    monkeypatch.setenv("WARREN_DATA", str(no_login / "data"))


def findings(
    capsys: pytest.CaptureFixture[str], *words: str, code: int
) -> dict[str, dict[str, Any]]:
    assert run(["doctor", "--json", *words]) == code
    found = map(json.loads, capsys.readouterr().out.splitlines())
    return {one["subject"].partition(" /")[0]: one for one in found}


@pytest.mark.usefixtures("environment")
def test_all_is_well(warren: WarrenServer, capsys: pytest.CaptureFixture[str]) -> None:
    found = findings(capsys, "--url", warren.http_url, "--callback", warren.http_url, code=0)
    well = (
        "clock",
        "guest",
        "connections",
        "memory alarm",
        "open files",
        "storage",
        "callbacks",
        "dead letters",
    )
    assert {found[subject]["level"] for subject in well} == {"ok"}, found


@pytest.mark.usefixtures("environment")
def test_the_ports_of_the_server_that_is_asked_are_not_missed(
    warren: WarrenServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = {"amqp": urlsplit(warren.amqp_url).port, "http": urlsplit(warren.http_url).port}
    for name, port in ports.items():
        monkeypatch.setenv(f"WARREN_{name.upper()}_PORT", str(port))
    found = findings(capsys, "--url", warren.http_url, code=0)
    assert {found[f"port {port} ({name})"]["level"] for name, port in ports.items()} == {"ok"}


@pytest.mark.usefixtures("environment")
def test_a_callback_that_fails(
    warren: WarrenServer, callback: Callback, capsys: pytest.CaptureFixture[str]
) -> None:
    form = {"hub.mode": "subscribe", "hub.callback": callback.url, "hub.topic": "#"}
    url = f"{warren.http_url}/subscribe/x/amq.topic"
    httpx.post(url, data=form, auth=GUEST).raise_for_status()
    callback.script(500)
    httpx.post(f"{warren.http_url}/endpoint/x/amq.topic", content="1", auth=GUEST)
    errors = f"{warren.http_url}/api/hub/errors"
    wait_until(lambda: len(httpx.get(errors, auth=GUEST).json()["errors"]) > 0, WAIT_S, "an error")
    found = findings(capsys, "--url", warren.http_url, code=1)
    failing = found[f"callback {callback.url}"]
    assert failing["level"] == "problem" and "500" in failing["text"]
    assert failing["advice"].startswith("'warren deliveries --subscription ")
    assert found["dead letters"]["text"] == "1 message could not be delivered"
    gone = f"http://127.0.0.1:{free_port()}"
    assert run(["doctor", "--url", warren.http_url, "--callback", gone]) == 1
    assert "PROBLEM  callback 127.0.0.1:" in capsys.readouterr().out


@pytest.mark.usefixtures("environment")
def test_publishing_and_consuming_over_one_connection(
    warren: WarrenServer, capsys: pytest.CaptureFixture[str]
) -> None:
    url = pika.URLParameters(warren.amqp_url)
    with pika.BlockingConnection(url) as both, pika.BlockingConnection(url) as one:
        one.channel().basic_publish("", "none", b"")
        both.channel().basic_publish("", "none", b"")
        channel = both.channel()
        channel.queue_declare("mine", exclusive=True)
        channel.basic_consume("mine", lambda *_: None)
        assert run(["doctor", "--json", "--url", warren.http_url]) in (0, 1)
    found = {one["subject"]: one for one in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found["connections"]["level"] == "warning"
    assert found["connections"]["text"].startswith("1 publish and consume, such as 127.0.0.1:")


@pytest.mark.usefixtures("environment")
def test_a_server_at_which_all_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *more, **named: real("127.0.0.1", *more, **named)
    )
    with IllServer() as server:
        found = findings(capsys, "--url", f"http://hub.example:{server.port}", code=1)
    levels = {subject: one["level"] for subject, one in found.items()}
    assert levels["guest"] == levels["memory alarm"] == levels["storage"] == "problem"
    assert levels["clock"] == levels["open files"] == levels["dead_letters"] == "warning"
    version = found[f"server http://hub.example:{server.port}"]
    assert version["text"] == f"is Warren 0.0.1, this command {VERSION}"
    assert "over one connection waits for itself" in found["memory alarm"]["advice"]
    assert "it is damaged" in found["storage"]["text"]
    assert found["disk alarm"]["level"] == "ok"


def test_a_machine_that_is_not_ready(
    capsys: pytest.CaptureFixture[str], no_login: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv("WARREN_AMQP_PORT", str(taken.getsockname()[1]))
    (no_login / "file").touch()
    words = ("--data", str(no_login / "file"), "--url", f"http://127.0.0.1:{free_port()}")
    found = findings(capsys, *words, code=1)
    taken.close()
    [port] = [one for subject, one in found.items() if "(amqp)" in subject]
    assert port["level"] == "warning" and "--amqp-port" in port["advice"]
    assert found["data"]["level"] == "problem"
    [server] = [one for subject, one in found.items() if subject.startswith("server")]
    assert "can't be reached" in server["text"]
