"""Names that are legal and odd mean the same at both doors."""

from __future__ import annotations

from http.client import HTTPConnection
from urllib.parse import quote

import pytest

from tests.conformance import raw
from tests.support.server import WarrenServer

NAMES = [
    "a" * 255,
    "\u00e9" * 127,
    "\U0001f430" * 63,
    "e\u0301",
    "\ufeffmark",
    "\u202eright to left",
    "\u2028line separator",
    "\ttab and space ",
    "\x1b[31mred",
    "\x7f",
    "..",
    "%2F%00",
    "/",
    "a/b?c#d&e=f+g",
    "<script>alert(1)</script>",
    "'\"; --",
    "%s {} ${x}",
]


def escape(text: str) -> str:
    """Dots too: two of them would be a step up."""
    return quote(text, safe="").replace(".", "%2E")


def post(server: WarrenServer, target: str) -> int:
    """Sends the target as it is, and gives the status."""
    connection = HTTPConnection(server.host, server.http_port, timeout=raw.TIMEOUT_S)
    try:
        headers = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
        connection.request("POST", target, b"over HTTP", headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[1:25])
def test_amqp_and_http_reach_the_same_names(warren: WarrenServer, name: str) -> None:
    key = name[:60]
    with raw.connect(warren.amqp_port) as client:
        channel = client.channel()
        channel.declare(name)
        channel.call("Exchange.Declare", exchange=name, exchange_type="direct")
        channel.call("Queue.Bind", queue=name, exchange=name, routing_key=key)
        channel.publish(b"over AMQP", {"message_id": name}, exchange=name, routing_key=key)
        for letter in "qx":
            assert post(warren, f"/endpoint/{letter}/{escape(name)}?hub.topic={escape(key)}") == 202
        first = channel.taken(name)
        assert (first.method.exchange, first.method.routing_key) == (name, key)
        assert first.properties.message_id == name
        assert channel.drain(name) == [b"over HTTP", b"over HTTP"]
    assert "Traceback" not in warren.output()


def test_names_do_not_forge_log_lines(warren: WarrenServer) -> None:
    forged = "x\n2026-01-01 00:00:00,000 CRITICAL forged\x1b[31m"
    with raw.Client(warren.amqp_port) as client:
        client.start()
        client.log_in(mechanism=forged)
        client.closed(503)
    with raw.Client(warren.amqp_port) as client:
        client.start()
        client.log_in()
        client.tune()
        client.send_method("Connection.Open", virtual_host=forged)
        client.closed(530)
    lines = warren.output().splitlines()
    assert sum("forged" in line for line in lines) == 2
    assert not any(line.startswith("2026-01-01") or "\x1b" in line for line in lines)
