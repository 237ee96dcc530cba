"""reliability.md section 6: the bad inputs of the HTTP port, by number, over raw sockets."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.server import WarrenServer

from . import raw

TIMEOUT_S = 30.0
PATIENCE_S = 25.0
MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_HEAD_BYTES = 16 * 1024
MAX_FIELDS = 100
GUEST = b"Authorization: Basic " + base64.b64encode(b"guest:guest") + b"\r\n"
HOST = b"Host: localhost\r\n"


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Connection:
    """One TCP connection to the HTTP port."""

    port: int

    def __post_init__(self) -> None:
        self.socket = socket.create_connection((raw.HOST, self.port), TIMEOUT_S)
        self.reader = self.socket.makefile("rb")

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        """The server may answer and hang up before it has read all."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def reply(self) -> Reply:
        status = int(self.reader.readline().split()[1])
        headers = {}
        while line := self.reader.readline().strip():
            key, value = line.decode("latin-1").split(":", 1)
            headers[key.lower()] = value.strip()
        body = self.reader.read(int(headers.get("content-length", 0)))
        return Reply(status, headers, body)

    def ended(self) -> bool:
        try:
            return self.reader.read(1) == b""
        except ConnectionResetError:
            return True


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[Connection]:
    with Connection(warren.http_port) as connection:
        yield connection


@pytest.fixture(scope="module")
def queue(warren: WarrenServer) -> str:
    with raw.connect(warren.amqp_port) as client:
        client.channel().declare("bad-input", durable=True)
    return "bad-input"


@pytest.fixture(autouse=True)
def undisturbed(warren: WarrenServer, queue: str) -> Iterator[None]:
    """Publishing goes on after each, and nothing came through but what this publishes."""
    yield
    with Connection(warren.http_port) as connection:
        connection.send(request("POST", f"/endpoint/q/{queue}", b"bystander"))
        assert connection.reply().status == 202
    with raw.connect(warren.amqp_port) as client:
        assert client.channel().drain(queue) == [b"bystander"]


def head(method: str, path: str, fields: bytes = b"") -> bytes:
    return f"{method} {path} HTTP/1.1\r\n".encode() + HOST + GUEST + fields + b"\r\n"


def request(method: str, path: str, body: bytes = b"", fields: bytes = b"") -> bytes:
    return head(method, path, fields + b"Content-Length: %d\r\n" % len(body)) + body


def refused(http: Connection, status: int) -> Reply:
    """Reads a problem report with that status; it shows no trace of the program."""
    reply = http.reply()
    assert reply.status == status, reply
    assert b"Traceback" not in reply.body
    return reply


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        b"Content-Length: 4\r\nContent-Length: 5\r\n",
        b"Content-Length: 4\r\nContent-Length: 4\r\n",
        b"Content-Length: 4, 5\r\n",
        b"Content-Length: -4\r\n",
        b"Content-Length: +4\r\n",
        b"Content-Length: 4x\r\n",
    ],
)
def test_33_two_lengths(http: Connection, queue: str, fields: bytes) -> None:
    """Nothing behind the head is taken for a second request."""
    smuggled = request("POST", f"/endpoint/q/{queue}", b"smuggled")
    http.send(head("POST", f"/endpoint/q/{queue}", fields) + b"0\r\n\r\n" + smuggled)
    refused(http, 400)
    assert http.ended()


@pytest.mark.parametrize(
    "fields",
    [
        b"X-One: 1\nX-Two: 2\r\n",
        b"X-One: a\x00b\r\n",
        b"X-One: 1\r\n folded\r\n",
        b"X-One: 1\r\n\tfolded\r\n",
        b"X-One\r\n",
        b"X One: 1\r\n",
        b"X-One : 1\r\n",
        b": 1\r\n",
        b"X-One: a\rb\r\n",
    ],
)
def test_34_malformed_head(http: Connection, queue: str, fields: bytes) -> None:
    http.send(request("POST", f"/endpoint/q/{queue}", b"never", fields))
    refused(http, 400)
    assert http.ended()


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n\n"])
def test_34_bare_line_feed(http: Connection, queue: str, line_end: bytes) -> None:
    lines = [b"POST /endpoint/q/%b HTTP/1.1" % queue.encode(), HOST.strip(), GUEST.strip()]
    http.send(line_end.join([*lines, b"Content-Length: 5", b"", b"never"]))
    refused(http, 400)
    assert http.ended()


@pytest.mark.parametrize(
    "hosts", [b"", HOST + HOST, HOST + b"Host: elsewhere\r\n", b"Host: a, b\r\n", b"Host: a b\r\n"]
)
def test_35_not_one_host(http: Connection, queue: str, hosts: bytes) -> None:
    line = f"POST /endpoint/q/{queue} HTTP/1.1\r\n".encode()
    http.send(line + hosts + GUEST + b"Content-Length: 5\r\n\r\nnever")
    refused(http, 400)
    assert http.ended()


@pytest.mark.parametrize(
    "fields",
    [
        b"X-Long: " + b"x" * MAX_HEAD_BYTES + b"\r\n",
        b"".join(b"X-%d: %b\r\n" % (number, b"x" * 1000) for number in range(20)),
        b"".join(b"X-%d: x\r\n" % number for number in range(MAX_FIELDS + 1)),
    ],
    ids=["long field", "long in all", "many fields"],
)
def test_36_head_too_large(http: Connection, queue: str, fields: bytes) -> None:
    http.send(request("POST", f"/endpoint/q/{queue}", b"never", fields))
    refused(http, 431)
    assert http.ended()


def test_36_head_that_never_ends(http: Connection) -> None:
    http.send(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 1_000_000)
    refused(http, 431)
    assert http.ended()


def test_36_long_request_line(http: Connection, queue: str) -> None:
    http.send(request("POST", f"/endpoint/q/{queue}?hub.topic={'x' * MAX_HEAD_BYTES}", b"never"))
    assert http.reply().status in (414, 431)
    assert http.ended()


def test_37_body_announced_too_large(http: Connection, queue: str) -> None:
    """Answered by the length alone: no byte of the body is sent."""
    length = b"Content-Length: %d\r\n" % (MAX_BODY_BYTES + 1)
    http.send(head("POST", f"/endpoint/q/{queue}", length))
    refused(http, 413)


def test_37_body_announced_absurdly_large(http: Connection, queue: str) -> None:
    http.send(head("POST", f"/endpoint/q/{queue}", b"Content-Length: 99999999999999999999\r\n"))
    assert http.reply().status in (400, 413)


def test_37_chunked_body_too_large(http: Connection, queue: str) -> None:
    """One byte more than fits; the last chunk is never sent."""
    http.send(head("POST", f"/endpoint/q/{queue}", b"Transfer-Encoding: chunked\r\n"))
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    for _ in range(16):
        http.send(chunk)
    http.send(b"1\r\nx\r\n")
    refused(http, 413)


@pytest.mark.parametrize("chunked", [False, True])
def test_37_largest_body(warren: WarrenServer, http: Connection, queue: str, chunked: bool) -> None:
    body = b"x" * MAX_BODY_BYTES
    if chunked:
        http.send(head("POST", f"/endpoint/q/{queue}", b"Transfer-Encoding: chunked\r\n"))
        http.send(b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
    else:
        http.send(request("POST", f"/endpoint/q/{queue}", body))
    assert http.reply().status == 202
    with raw.connect(warren.amqp_port) as client:
        assert client.channel().taken(queue).body == body


@pytest.mark.parametrize("size", [b"-1", b"xyz", b"", b"fffffffffffffffff"])
def test_37_chunk_size_that_is_not_a_number(http: Connection, queue: str, size: bytes) -> None:
    http.send(head("POST", f"/endpoint/q/{queue}", b"Transfer-Encoding: chunked\r\n"))
    http.send(size + b"\r\nnever\r\n0\r\n\r\n")
    assert http.reply().status in (400, 413)
    assert http.ended()


def test_38_half_a_head(http: Connection) -> None:
    http.socket.settimeout(PATIENCE_S)
    http.send(b"GET /endpoint/q/x HTTP/1.1\r\nHost: local")
    refused(http, 408)
    assert http.ended()


@pytest.mark.parametrize("encoding", [b"rot13", b"gzip, gzip", b"gzip, identity, deflate"])
def test_39_encoding(http: Connection, queue: str, encoding: bytes) -> None:
    fields = b"Content-Encoding: " + encoding + b"\r\n"
    http.send(request("POST", f"/endpoint/q/{queue}", b"never", fields))
    refused(http, 415)


JSON_BODIES = {
    "too deep": b'{"hub": ' + b"[" * 1000 + b"]" * 1000 + b"}",
    "depth of ten thousand": b"[" * 10_000 + b"]" * 10_000,
    "no number": b'{"hub": {"mode": "subscribe", "lease_seconds": NaN}}',
    "infinity": b'{"hub": {"mode": "subscribe", "lease_seconds": -Infinity}}',
    "duplicate key": b'{"hub": {"mode": "subscribe", "mode": "unsubscribe"}}',
    "huge number": b'{"hub": {"mode": "subscribe", "lease_seconds": ' + b"9" * 100_000 + b"}}",
    "cut": b'{"hub": {"mode": "sub',
    "no object": b"5",
    "not UTF-8": b'{"hub": "\xff"}',
    "nothing": b"",
}


@pytest.mark.parametrize("body", JSON_BODIES.values(), ids=JSON_BODIES)
def test_40_json(http: Connection, queue: str, body: bytes) -> None:
    fields = b"Content-Type: application/json\r\n"
    http.send(request("POST", f"/subscribe/q/{queue}", body, fields))
    reply = refused(http, 400)
    assert json.loads(reply.body)["status"] == 400


@pytest.mark.parametrize("name", ["a%00b", "a%0Ab", "a%0D%0Ab", "%00"])
@pytest.mark.parametrize("kind", ["q", "x"])
def test_41_name_with_a_control(http: Connection, kind: str, name: str) -> None:
    http.send(request("PUT", f"/endpoint/{kind}/{name}"))
    refused(http, 400)


@pytest.mark.parametrize("query", ["amqp.content_type=a%0D%0AX-Evil:%201", "amqp.app_id=a%0Ab"])
def test_41_line_end_in_a_property(
    warren: WarrenServer, http: Connection, queue: str, query: str
) -> None:
    """Refused, or taken as it is: it never makes a header of its own."""
    http.send(request("POST", f"/endpoint/q/{queue}?{query}", b"a"))
    status = http.reply().status
    assert status in (202, 400)
    with raw.connect(warren.amqp_port) as client:
        message = client.channel().get(queue)
        assert (message is not None) == (status == 202)
        if message is not None:
            properties = message.properties
            assert "\n" in f"{properties.content_type}{properties.app_id}"
