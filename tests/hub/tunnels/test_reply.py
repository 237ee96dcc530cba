"""What is taken as a reply is a response to others too."""

from __future__ import annotations

import h11
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.hub.tunnels.errors import BadReply
from warrenmq.hub.tunnels.reply import Reply, read_reply

PIECES = (
    b"HTTP/1.1 200 OK", b"HTTP/1.0 404 ", b"HTTP/1.1 204 No", b"HTTP/1.1 99 x", b"\r\n", b"\n",
    b"Content-Length: 3", b"content-length: 03", b"Content-Length: 1", b"Content-Length: -1",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Set-Cookie: a=1", b"A: b",
    b" folded", b"A\t: b", b"A:\x00", b"\r\n\r\n", b"abc", b"1\r\na\r\n", b"0\r\n\r\n", b"0" * 9,
)  # fmt: skip
MESSAGES = st.lists(st.sampled_from(PIECES), min_size=3, max_size=9).map(
    lambda pieces: b"HTTP/1.1 200 OK\r\n" + b"".join(pieces)
)


def read_by_h11(message: bytes) -> tuple[int, bytes]:
    """Raises `h11.RemoteProtocolError`."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(message)
    connection.receive_data(b"")
    response = connection.next_event()
    assert isinstance(response, h11.Response)
    body = b""
    while isinstance(event := connection.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage)
    return response.status_code, body


@given(MESSAGES)
def test_h11_reads_the_same(message: bytes) -> None:
    try:
        reply = read_reply(message)
    except BadReply:
        return
    assert read_by_h11(message) == (reply.status, reply.body)


def test_one_that_is_whole() -> None:
    message = b"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\n\r\nabc"
    assert read_reply(message) == Reply(200, [(b"a", b"b")], b"abc")
