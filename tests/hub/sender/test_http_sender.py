"""The sender with servers that are slow, faulty or hostile (reliability.md F17)."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ssl
import tracemalloc
from collections.abc import AsyncIterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.hub.support import Posting, serving, until
from tests.support.http import Answer as Scripted
from tests.support.http import Callback
from tests.support.settings import hub_settings
from warrenmq.hub.guard.dialler import Dialler
from warrenmq.hub.guard.guard import NOT_REACHED, Guard
from warrenmq.hub.guard.lookups import Purpose
from warrenmq.hub.sender.client import HttpClient
from warrenmq.hub.sender.http_sender import HttpSender
from warrenmq.hub.sender.port import Answer, SendError, TimedOut
from warrenmq.hub.sender.response import ResponseLimits
from warrenmq.hub.sender.tls import client_tls

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


@contextlib.asynccontextmanager
async def sending(**given: Any) -> AsyncIterator[Posting]:
    settings = hub_settings(**{"allow_loopback": True, **given})
    sender = HttpSender(settings, Guard(settings))
    try:
        yield Posting(sender)
    finally:
        await sender.close()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return head + await reader.readexactly(length)


class Target:
    """A raw server that gives its answers in turn on each connection.

    With `unit`, an answer is followed by that without end; `is_slow` sends it octet by octet;
    after `per_connection` answers the next request is read and the connection closed.
    """

    def __init__(
        self, *answers: bytes, unit: bytes = b"", is_slow: bool = False, per_connection: int = 0
    ) -> None:
        self._answers = answers
        self._unit = unit
        self._is_slow = is_slow
        self._per_connection = per_connection
        self.connections = self.posts = self.open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            for number, answer in enumerate(cycle(self._answers), 1):
                await read_request(reader)
                self.posts += 1
                octets = [answer[at : at + 1] for at in range(len(answer))]
                for piece in octets if self._is_slow else [answer]:
                    writer.write(piece)
                    await writer.drain()
                while self._unit:
                    writer.write(self._unit * 1_000)
                    await writer.drain()
                if number == self._per_connection:
                    await reader.read(1)
                    return
        except asyncio.IncompleteReadError:
            return
        finally:
            self.open -= 1

    async def post(self, count: int = 1, body: bytes = b"x", **given: Any) -> list[Answer]:
        async with serving(self.serve) as url, sending(**given) as sender:
            return [await sender.post(url, {}, body) for _ in range(count)]


@pytest.mark.parametrize(
    "end", ["", "?", "??", "?a", "?a=?", "//b/%2F%3d?", "/%7Ea;b=@:!$'()*?a+b=%20&&", "/a/../b?"]
)
async def test_the_url_is_used_as_it_was_given(callback: Callback, end: str) -> None:
    async with sending() as sender:
        assert (await sender.post(callback.url + end, {}, b"a")).status == 200
    assert callback.deliveries[0].raw_path == f"/callback{end}"


async def test_a_post_is_sent_as_it_is(callback: Callback, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without cookies, and not to a proxy of the environment."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    callback.default = Scripted(headers={"Set-Cookie": "a=b"})
    headers = {"Content-Type": "text/plain", "X-AMQP-Routing-Key": "eu.fr"}
    async with sending() as sender:
        for body in (b"\x00\xff", b""):
            assert (await sender.post(callback.url, headers, body)).status == 200
    for got, body in zip(callback.deliveries, (b"\x00\xff", b""), strict=True):
        assert (got.body, got.headers["Content-Length"]) == (body, str(len(body)))
        assert {name: got.headers[name] for name in headers} == headers
        assert "Cookie" not in got.headers and "Expect" not in got.headers


@pytest.mark.parametrize(
    ("sent", "head"),
    [
        (
            b"HTTP/1.1 503 Busy\r\nX-A: 1\r\nx-b:  caf\xe9\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 503 Busy\nX-A: 1\nx-b: caf\u00e9\nContent-Length: 0",
        ),
        (b"HTTP/1.1 204 \r\n\r\n", "HTTP/1.1 204"),
        (
            b"HTTP/1.1 200 OK\r\n" + b"X-Long: 123456789\r\n" * 100 + b"\r\n",
            ("HTTP/1.1 200 OK" + "\nX-Long: 123456789" * 100)[:512],
        ),
    ],
)
async def test_the_head_of_the_answer(sent: bytes, head: str) -> None:
    [answer] = await Target(sent, per_connection=1).post()
    assert (answer.head, answer.retry_after) == (head, None)


async def test_connections_are_kept_and_a_closed_one_replaced_at_once() -> None:
    target = Target(NO_CONTENT, per_connection=2)
    assert [answer.status for answer in await target.post(5)] == [204] * 5
    assert (target.connections, target.posts) == (3, 5)


async def test_answers_of_every_form_follow_each_other_on_a_connection() -> None:
    forms = {
        b"HTTP/1.1 503 Busy\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nab": "Busy\nX-A: 1",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n": "200",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n": "OK",
        NO_CONTENT: "204 No Content",
    }
    target = Target(*forms, is_slow=True)
    answers = await target.post(2 * len(forms))
    for answer, part in zip(answers, [*forms.values()] * 2, strict=True):
        assert part in answer.head
    assert target.connections == 1


async def test_a_connection_with_more_than_the_answer_is_not_used_again() -> None:
    target = Target(NO_CONTENT + b"HTTP/1.1 500 Not asked for\r\nContent-Length: 0\r\n\r\n")
    assert [answer.status for answer in await target.post(3)] == [204] * 3
    assert (target.connections, target.posts) == (3, 3)


async def test_the_limit_is_for_each_answer() -> None:
    target = Target(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"z" * 1_000)
    answers = await target.post(50, max_response_bytes=2_000)
    assert {answer.status for answer in answers} == {200} and target.connections == 1


async def test_each_request_has_its_own_time() -> None:
    settings = hub_settings(allow_loopback=True)
    guard, may_answer = Guard(settings), asyncio.Event()
    client = HttpClient(
        guard, Dialler(guard, 1.0, Purpose.DELIVER), ResponseLimits(1_000), keep_s=60
    )
    loop = asyncio.get_running_loop()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await read_request(reader)
            writer.write(NO_CONTENT)
            await may_answer.wait()

    async with serving(answer) as url:
        first_until_s = loop.time() + 1.0
        await client.ask("POST", url, {}, b"x", 1.0)
        second = asyncio.create_task(client.ask("POST", url, {}, b"x", 30.0))
        await until(lambda: loop.time() > first_until_s + 0.1, "end of the first one's time")
        may_answer.set()
        assert (await second).status == 204
    client.close()


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def test_a_target_that_hangs() -> None:
    async with serving(hang) as url, sending(total_timeout_s=0.1) as sender:
        with pytest.raises(TimedOut, match="no answer in time"):
            await sender.post(url, {}, b"x")


async def test_pending_posts_end_with_the_client() -> None:
    async with serving(hang) as url, sending() as sender:
        posting = asyncio.create_task(sender.post(url, {}, b"x"))
        await asyncio.sleep(0)
        await sender.sender.close()
        with pytest.raises(SendError, match="closed"):
            await posting


async def test_a_large_body_is_sent_whole_without_a_copy_of_it() -> None:
    body = bytes(range(256)) * 128 * 1024
    digest = hashlib.sha256()

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        left = len(body)
        while left:
            data = await reader.read(64 * 1024)
            digest.update(data)
            left -= len(data)
        writer.write(NO_CONTENT)

    async with serving(swallow) as url, sending(total_timeout_s=60) as sender:
        tracemalloc.start()
        try:
            assert (await sender.post(url, {}, body)).status == 204
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak_bytes < 4 * 1024 * 1024
    assert digest.digest() == hashlib.sha256(body).digest()


async def test_an_answer_may_come_before_the_body_is_sent() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await reader.read()

    async with serving(answer) as url, sending() as sender:
        for _ in range(2):
            assert (await sender.post(url, {}, bytes(50_000_000))).status == 413


async def test_tls_is_for_the_name_of_the_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setattr("warrenmq.hub.sender.client.client_tls", client_tls.__wrapped__)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    target, body = Target(NO_CONTENT), bytes(range(256)) * 8_000
    async with serving(target.serve, tls=tls) as url, sending() as sender:
        for _ in range(2):
            named = url.replace("127.0.0.1", "localhost")
            assert (await sender.post(named, {}, body)).status == 204
        with pytest.raises(SendError, match="certificate"):
            await sender.post(url, {}, body)
    assert (target.connections, target.posts) == (1, 2)


@pytest.mark.parametrize("status", [200, 410, 503])
@pytest.mark.parametrize(
    ("behind", "unit"),
    [
        (b"Content-Length: 100\r\n\r\nshort", b""),
        (b"Content-Length: 5\r\n\r\nmuch more than that", b""),
        (b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", b""),
        (CHUNKED + b"no chunk at all", b""),
        (CHUNKED + b"5\r\nab", b""),
        (CHUNKED, b"1;" + b"x" * 999 + b"\r\nz\r\n"),
        (CHUNKED + b"1;", b"x"),
        (b"Content-Length: 10000000000\r\n\r\n", b"x"),
        (b"\r\n", b"x"),
        (b"Content-Encoding: gzip\r\n\r\nnot gzip", b""),
        (b"X: cut", b""),
        (b"no field\r\n\r\n", b""),
        (b"", b"X: y\r\n"),
    ],
)
async def test_the_status_line_decides_whatever_follows(
    status: int, behind: bytes, unit: bytes
) -> None:
    """Limits of size end an endless answer, and nothing is posted again."""
    posts = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal posts
        await read_request(reader)
        posts += 1
        writer.write(b"HTTP/1.1 %d Done\r\n" % status + behind)
        while unit:
            writer.write(unit * 1_000)
            await writer.drain()

    async with serving(answer) as url, sending(total_timeout_s=60) as sender:
        assert (await sender.post(url, {}, b"x")).status == status
    assert posts == 1


async def test_a_body_that_never_ends_delays_its_status_for_a_moment() -> None:
    target = Target(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
    async with serving(target.serve) as url, sending(total_timeout_s=3_600) as sender:
        assert (await sender.post(url, {}, b"x")).status == 200
        await until(lambda: not target.open, "end of the connection")


async def test_endless_interim_responses_are_cut() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    target = Target(interim, unit=interim)
    with pytest.raises(SendError, match="interim"):
        await target.post(total_timeout_s=3_600)
    assert target.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"H", b"HTTP/1.1 20", b"HTTP/1.1 99999 What\r\n\r\n", b"SSH-2.0-OpenSSH\r\n",
        b"\x15\x03\x01\x00\x02", b"HTTP/1.1 100 Continue\r\n\r\nwhat",
    ],
)  # fmt: skip
async def test_invalid_answers_are_failures(answer: bytes) -> None:
    """And nothing is posted again on a new connection."""
    posts = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal posts
        await read_request(reader)
        posts += 1
        writer.write(answer)

    async with serving(talk) as url, sending() as sender:
        with pytest.raises(SendError):
            await sender.post(url, {}, b"x")
    assert posts == 1


async def test_a_name_is_dialled_where_the_guard_has_seen_it(callback: Callback) -> None:
    async with sending() as sender:
        url = callback.url.replace("127.0.0.1", "localhost")
        assert (await sender.post(url, {}, b"x")).status == 200
    assert callback.deliveries[0].headers["Host"] == f"localhost:{callback.port}"


@pytest.mark.parametrize("is_port_listed", [False, True])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_refused_targets_are_not_dialled(
    callback: Callback, host: str, is_port_listed: bool
) -> None:
    ports = frozenset({80, 443, callback.port} if is_port_listed else {80, 443})
    reason = "not public" if is_port_listed else "not allowed"
    async with sending(allow_loopback=False, callback_ports=ports) as sender:
        with pytest.raises(SendError, match=f"{reason}|{NOT_REACHED}"):
            await sender.post(callback.url.replace("127.0.0.1", host), {}, b"x")
    assert callback.requests == []
