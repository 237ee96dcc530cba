"""Requests as Server-Sent Events, as `application/http` and over WebSocket."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.app.routes.test_reversehttp import counted, fails
from tests.support.server import WarrenServer
from tests.support.tunnels import TOKEN, Tunnels, Wire, response
from tests.support.websocket import CLOSE, PING, PONG, client_frame

CREDIT, TEXT = 8, 1


@pytest.fixture(scope="module")
def server() -> Iterator[WarrenServer]:
    with WarrenServer() as server:
        yield server


@pytest.fixture
def tunnels(server: WarrenServer) -> Iterator[Tunnels]:
    found = Tunnels(server.http_port)
    yield found
    found.close()


def event(wire: Wire) -> tuple[str, dict[str, Any]]:
    """The next event with its JSON; comments are skipped."""
    fields: dict[str, str] = {}
    while (line := wire.line()) or not fields:
        name, _, value = line.partition(": ")
        if name:
            fields[name] = value
    return fields["event"], json.loads(fields["data"]) | {"id": fields.get("id", "")}


def test_events(tunnels: Tunnels) -> None:
    """As many requests as there is credit for, then one for each reply; replies in any order."""
    enrolled = tunnels.enrol("events")
    stream = tunnels.begin("GET", enrolled.link("first"), "Accept: text/event-stream")
    assert stream.head()["content-type"] == "text/event-stream"
    public = enrolled.link("related")
    asked = [tunnels.begin("POST", f"{public}{n}", body=b"\xff") for n in range(CREDIT + 1)]
    counted(tunnels, "events", in_flight=CREDIT, queued=1, waiting_polls=0)
    taken = [event(stream) for _ in range(CREDIT)]
    assert {kind for kind, _ in taken} == {"request"}
    for _, document in reversed(taken):
        message = base64.b64decode(document["message"])
        assert message.endswith(b"\r\n\r\n\xff")
        assert document["client"].startswith("127.0.0.1:")
        assert document["reply"].endswith("/" + document["id"])
        number = message.split(b" ")[1].removeprefix(b"/")
        assert tunnels.reply(document["reply"], response(number)).status == 202
    _, last = event(stream)
    tunnels.reply(last["reply"], response(b"8"))
    assert [int(wire.read().body) for wire in asked] == [*range(CREDIT + 1)]
    tunnels.ask("DELETE", enrolled.fields["location"])
    kind, document = event(stream)
    assert (kind, document["status"]) == ("error", 410)


@pytest.mark.parametrize("is_release", [False, True])
def test_a_stream_without_credit(tunnels: Tunnels, *, is_release: bool) -> None:
    """It does not wait when its label is released or its token changes, and gets nothing more."""
    enrolled = tunnels.enrol("spent")
    stream = tunnels.begin("GET", enrolled.link("first"), "Accept: text/event-stream")
    stream.head()
    asked = [tunnels.begin("GET", enrolled.link("related")) for _ in range(CREDIT)]
    taken = [event(stream)[1] for _ in asked]
    private_url = enrolled.fields["location"]
    if is_release:
        tunnels.ask("DELETE", private_url)
    else:
        tunnels.ask("PUT", private_url, body=f"token={TOKEN}-2".encode())
    assert tunnels.reply(taken[0]["reply"], response(b"late")).status == 202
    kind, document = event(stream)
    assert (kind, document["status"]) == ("error", 410 if is_release else 404)
    tunnels.ask("DELETE", f"{private_url}-2")


def test_messages_one_at_a_time(tunnels: Tunnels) -> None:
    enrolled = tunnels.enrol("messages")
    url = enrolled.link("first")
    stream = tunnels.begin("GET", url, "Accept: application/http")
    assert stream.head()["content-type"] == "application/http"
    asked = [tunnels.begin("POST", enrolled.link("related"), body=b"%d" % n) for n in range(3)]
    for number, wire in enumerate(asked):
        counted(tunnels, "messages", in_flight=1)
        message = stream.chunk()
        assert message.startswith(b"POST / HTTP/1.1\r\n")
        body = message[-1:]
        assert tunnels.reply(url, response(b"to " + body)).status == 202
        assert wire.read().body == b"to %d" % number


def test_a_lost_stream_gives_way(tunnels: Tunnels) -> None:
    enrolled = tunnels.enrol("cut")
    stream = tunnels.begin("GET", enrolled.link("first"), "Accept: text/event-stream")
    counted(tunnels, "cut", waiting_polls=1)
    stream.close()
    counted(tunnels, "cut", waiting_polls=0)
    requestor = tunnels.begin("GET", enrolled.link("related"))
    assert tunnels.poll(enrolled.link("first")).status == 200
    tunnels.reply(enrolled.link("first"), response(b"ok"))
    assert requestor.read().body == b"ok"


UPGRADE = (
    "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)  # fmt: skip


def text(wire: Wire, document: object) -> None:
    wire.raw(client_frame(TEXT, json.dumps(document).encode()))


def test_websocket(tunnels: Tunnels) -> None:
    enrolled = tunnels.enrol("socket")
    wire = tunnels.begin("GET", enrolled.link("first"), *UPGRADE)
    assert wire.head()["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    asked = [tunnels.begin("POST", enrolled.link("related"), body=b"%d" % n) for n in range(2)]
    taken = []
    for _ in asked:
        opcode, payload = wire.frame()
        assert opcode == TEXT
        taken.append(json.loads(payload))
    for document in reversed(taken):
        body = base64.b64decode(document["message"])[-1:]
        bad = base64.b64encode(b"HTTP/1.1 100 Continue\r\n\r\n").decode()
        text(wire, {"id": document["id"], "message": bad})
        refused = json.loads(wire.frame()[1])
        assert (refused["id"], refused["error"]["status"]) == (document["id"], 400)
        good = base64.b64encode(response(b"to " + body)).decode()
        text(wire, {"id": document["id"], "message": good})
    assert [one.read().body for one in asked] == [b"to 0", b"to 1"]
    for document, part in (([], "is no JSON"), ({"id": "x", "message": "?"}, "is unknown")):
        text(wire, document)
        assert part in json.loads(wire.frame()[1])["error"]["detail"]
    wire.raw(client_frame(PING, b"p"))
    assert wire.frame() == (PONG, b"p")
    tunnels.ask("DELETE", enrolled.fields["location"])
    assert json.loads(wire.frame()[1])["error"]["status"] == 410
    assert wire.frame()[0] == CLOSE


def test_a_websocket_that_is_lost(tunnels: Tunnels) -> None:
    """Its requests are answered at once: their replies can't come any more."""
    enrolled = tunnels.enrol("broken")
    wire = tunnels.begin("GET", enrolled.link("first"), *UPGRADE)
    wire.head()
    asked = [tunnels.begin("GET", enrolled.link("related")) for _ in range(2)]
    taken = [json.loads(wire.frame()[1]) for _ in asked]
    text(wire, {"id": taken[0]["id"], "message": "A" * 3_000_000})
    assert wire.frame()[0] == CLOSE
    for one in asked:
        fails(one.read(), 504, "its connection has ended")


def test_websocket_of_a_page_elsewhere(tunnels: Tunnels) -> None:
    enrolled = tunnels.enrol("foreign")
    answer = tunnels.ask("GET", enrolled.link("first"), *UPGRADE, "Origin: http://evil.example")
    assert answer.status == 403


def test_no_websocket_through_a_tunnel(tunnels: Tunnels) -> None:
    """Least of all to the broker: the application gets a plain request."""
    enrolled = tunnels.enrol("plain")
    requestor = tunnels.begin("GET", enrolled.link("related"), *UPGRADE)
    message = tunnels.poll(enrolled.link("first")).body
    assert b"Upgrade" not in message
    tunnels.reply(enrolled.link("first"), response(b"no", status="426 Upgrade Required"))
    assert requestor.read().status == 426
