"""The sender against servers that behave as the world does (reliability.md F17)."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.hub.support import Posting, serving, until
from tests.support.http import Answer as Scripted
from tests.support.http import Callback
from warrenmq.hub.guard.dialler import Dialler
from warrenmq.hub.guard.guard import NOT_REACHED, Guard
from warrenmq.hub.guard.lookups import Purpose
from warrenmq.hub.sender.client import HttpClient
from warrenmq.hub.sender.connection import Limits
from warrenmq.hub.sender.http_sender import HttpSender
from warrenmq.hub.sender.port import SendError, TimedOut
from warrenmq.hub.settings import HubSettings

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


@contextlib.asynccontextmanager
async def sending(**given: Any) -> AsyncIterator[Posting]:
    settings = HubSettings(**{"allow_loopback": True, **given})
    sender = HttpSender(settings, Guard(settings))
    try:
        yield Posting(sender)
    finally:
        await sender.close()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return head + await reader.readexactly(length)


@pytest.mark.parametrize(
    "end", ["", "?", "??", "?a", "?a=?", "//b/%2F%3d?", "/%7Ea;b=@:!$'()*?a+b=%20&&", "/a/../b?"]
)
async def test_the_url_is_used_as_it_was_given(callback: Callback, end: str) -> None:
    async with sending() as sender:
        assert (await sender.post(callback.url + end, {}, b"a")).status == 200
    assert callback.deliveries[0].raw_path == f"/callback{end}"


async def test_the_post_arrives_as_it_is(callback: Callback) -> None:
    async with sending() as sender:
        headers = {"Content-Type": "text/plain", "X-AMQP-Routing-Key": "eu.fr"}
        url = callback.url + "?a=%2F&hub.topic=eu%2Efr"
        assert (await sender.post(url, headers, b"\x00\xff")).status == 200
    [got] = callback.deliveries
    assert got.raw_path == "/callback?a=%2F&hub.topic=eu%2Efr"
    assert got.body == b"\x00\xff"
    assert got.headers["Content-Length"] == "2"
    assert got.headers["Content-Type"] == "text/plain"
    assert got.headers["X-AMQP-Routing-Key"] == "eu.fr"
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
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(sent)

    async with serving(answer) as url, sending() as sender:
        assert (await sender.post(url, {}, b"x")).head == head


async def test_an_empty_body_is_posted(callback: Callback) -> None:
    async with sending() as sender:
        assert (await sender.post(callback.url, {"Content-Type": "a/b"}, b"")).status == 200
    assert callback.deliveries[0].headers["Content-Length"] == "0"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirects_are_answers(callback: Callback, status: int) -> None:
    callback.script(Scripted(status, headers={"Location": "/elsewhere"}))
    async with sending() as sender:
        assert (await sender.post(callback.url, {}, b"x")).status == status
    assert len(callback.requests) == 1


async def test_cookies_are_not_kept(callback: Callback) -> None:
    callback.default = Scripted(headers={"Set-Cookie": "a=b"})
    async with sending() as sender:
        for _ in range(2):
            await sender.post(callback.url, {}, b"x")
    assert all("Cookie" not in one.headers for one in callback.deliveries)


async def test_environment_proxies_are_not_asked(
    callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with sending() as sender:
        assert (await sender.post(callback.url, {}, b"x")).status == 200


async def test_retry_after_is_told(callback: Callback) -> None:
    callback.script(Scripted(503, headers={"Retry-After": "7"}))
    async with sending() as sender:
        answer = await sender.post(callback.url, {}, b"x")
    assert (answer.status, answer.retry_after) == (503, "7")


async def test_connections_are_kept_and_a_closed_one_replaced_at_once() -> None:
    connections = 0

    async def answer_twice_then_close(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal connections
        connections += 1
        for _ in range(2):
            await read_request(reader)
            writer.write(NO_CONTENT)
        await reader.readuntil(b"\r\n\r\n")  # the third post gets no answer

    async with serving(answer_twice_then_close) as url, sending() as sender:
        for _ in range(5):
            assert (await sender.post(url, {}, b"x")).status == 204
    assert connections == 3


async def test_answers_of_every_form_follow_each_other_on_a_connection() -> None:
    forms = {
        b"HTTP/1.1 503 Busy\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nab": "Busy\nX-A: 1",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n": "200",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n": "OK",
        NO_CONTENT: "204 No Content",
    }
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        for form in [*forms] * 2:
            await read_request(reader)
            for octet in form:
                writer.write(bytes([octet]))
                await writer.drain()

    async with serving(answer) as url, sending() as sender:
        for form in [*forms.values()] * 2:
            assert form in (await sender.post(url, {}, b"x")).head
    assert connections == 1


async def test_a_connection_with_more_than_the_answer_is_not_used_again() -> None:
    connections = 0

    async def answer_twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await read_request(reader)
        writer.write(NO_CONTENT + b"HTTP/1.1 500 Not asked for\r\n\r\n")
        await reader.read()

    async with serving(answer_twice) as url, sending() as sender:
        for _ in range(3):
            assert (await sender.post(url, {}, b"x")).status == 204
    assert connections == 3


async def test_each_request_has_its_own_time() -> None:
    settings = HubSettings(allow_loopback=True)
    guard, may_answer = Guard(settings), asyncio.Event()
    client = HttpClient(guard, Dialler(guard, 1.0, Purpose.DELIVER), Limits(1_000), keep_s=60)
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
        with pytest.raises(TimedOut, match="no answer in time"):
            async with serving(_hang) as silent:
                await client.ask("POST", silent, {}, b"x", 0.05)
    client.close()


async def _hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def test_what_is_under_way_when_the_client_is_closed_is_told() -> None:
    came = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        came.set()
        await reader.read()

    async with serving(take) as url, sending() as sender:
        posting = asyncio.create_task(sender.post(url, {}, b"x"))
        await came.wait()
        await sender.sender.close()
        with pytest.raises(SendError, match="closed"):
            await posting


async def test_a_fresh_connection_that_is_closed_without_an_answer_is_a_failure() -> None:
    posts = 0

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal posts
        await read_request(reader)
        posts += 1

    async with serving(close) as url, sending() as sender:
        for _ in range(2):
            with pytest.raises(SendError, match="closed"):
                await sender.post(url, {}, b"x")
    assert posts == 2


async def test_what_comes_unasked_ends_a_kept_connection() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(NO_CONTENT + b"HTTP/1.1 500 Not yours\r\nContent-Length: 0\r\n\r\n")
        await read_request(reader)
        raise AssertionError("it was used again")

    async with serving(answer) as url, sending() as sender:
        for _ in range(2):
            assert (await sender.post(url, {}, b"x")).status == 204


async def test_a_large_body_arrives_whole(callback: Callback) -> None:
    body = bytes(range(256)) * 40_000
    async with sending() as sender:
        for _ in range(2):
            assert (await sender.post(callback.url, {}, body)).status == 200
    assert [one.body == body for one in callback.deliveries] == [True, True]


async def test_a_large_body_is_sent_without_a_copy_of_it() -> None:
    body = bytes(32 * 1024 * 1024)

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        left = len(body)
        while left:
            left -= len(await reader.read(64 * 1024))
        writer.write(NO_CONTENT)

    async with serving(swallow) as url, sending(total_timeout_s=60) as sender:
        tracemalloc.start()
        try:
            assert (await sender.post(url, {}, body)).status == 204
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak_bytes < 4 * 1024 * 1024


async def test_tls_is_for_the_name_of_the_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    body, came, connections = bytes(range(256)) * 8_000, list[bytes](), 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                came.append((await read_request(reader)).partition(b"\r\n\r\n")[2])
                writer.write(NO_CONTENT)

    async with serving(answer, tls=tls) as url, sending() as sender:
        for _ in range(2):
            assert (
                await sender.post(url.replace("127.0.0.1", "localhost"), {}, body)
            ).status == 204
        with pytest.raises(SendError, match="certificate"):
            await sender.post(url, {}, body)
    assert came == [body, body] and connections == 1


async def test_an_answer_may_come_before_the_body_is_sent() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await reader.read()

    async with serving(answer) as url, sending() as sender:
        for _ in range(2):
            assert (await sender.post(url, {}, bytes(50_000_000))).status == 413


async def test_a_body_beyond_the_cap_is_not_read_to_its_end() -> None:
    written = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            written += 65_536
            await writer.drain()

    async with serving(pour) as url, sending(max_response_bytes=1_000) as sender:
        assert (await sender.post(url, {}, b"x")).status == 200
    assert written < 100_000_000


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


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
async def test_the_status_line_decides_whatever_is_behind_it(
    status: int, behind: bytes, unit: bytes
) -> None:
    """Its time is not what ends an answer without end, and nothing is posted again."""
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


async def test_a_status_is_told_though_its_body_never_ends() -> None:
    hanging = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal hanging
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        hanging += 1
        try:
            await reader.read()
        finally:
            hanging -= 1

    async with serving(answer) as url, sending(total_timeout_s=3_600) as sender:
        assert (await sender.post(url, {}, b"x")).status == 200
        await until(lambda: not hanging, "end of the connection")


async def test_interim_responses_without_end_are_cut() -> None:
    connections = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await read_request(reader)
        while True:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000)
            await writer.drain()

    async with serving(pour) as url, sending(total_timeout_s=3_600) as sender:
        with pytest.raises(SendError, match="interim"):
            await sender.post(url, {}, b"x")
    assert connections == 1


async def test_interim_responses_are_passed_over() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 503 Busy\r\n")
        writer.write(b"Retry-After: 9\r\nContent-Length: 0\r\n\r\n")

    async with serving(answer) as url, sending() as sender:
        got = await sender.post(url, {}, b"x")
    assert (got.status, got.retry_after) == (503, "9")
    assert got.head == "HTTP/1.1 503 Busy\nRetry-After: 9\nContent-Length: 0"


async def test_the_bound_is_for_each_answer() -> None:
    connections = 0
    body = b"z" * 1_000

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            await read_request(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + body)

    async with serving(answer) as url, sending(max_response_bytes=2_000) as sender:
        for _ in range(50):
            assert (await sender.post(url, {}, b"x")).status == 200
    assert connections == 1


async def test_a_target_that_hangs() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with serving(hang) as url, sending(total_timeout_s=0.1) as sender:
        with pytest.raises(TimedOut, match="in time"):
            await sender.post(url, {}, b"x")


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"H", b"HTTP/1.1 20", b"HTTP/1.1 99999 What\r\n\r\n", b"SSH-2.0-OpenSSH\r\n",
        b"\x15\x03\x01\x00\x02", b"HTTP/1.1 100 Continue\r\n\r\nwhat",
    ],
)  # fmt: skip
async def test_a_target_that_talks_nonsense(answer: bytes) -> None:
    posts = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal posts
        await read_request(reader)
        posts += 1
        writer.write(answer)
        await writer.drain()

    async with serving(talk) as url, sending() as sender:
        with pytest.raises(SendError):
            await sender.post(url, {}, b"x")
    assert posts == 1


async def test_a_target_that_is_not_there(callback: Callback) -> None:
    async with sending() as sender:
        with pytest.raises(SendError):
            await sender.post("http://127.0.0.1:1/", {}, b"x")


async def test_a_name_is_dialled_where_the_guard_has_seen_it(callback: Callback) -> None:
    async with sending() as sender:
        url = callback.url.replace("127.0.0.1", "localhost")
        assert (await sender.post(url, {}, b"x")).status == 200
    assert callback.deliveries[0].headers["Host"] == f"localhost:{callback.port}"


async def test_refused_targets_are_not_dialled(callback: Callback) -> None:
    async with sending(allow_loopback=False) as sender:
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(SendError, match=f"not allowed|not public|{NOT_REACHED}"):
                await sender.post(callback.url.replace("127.0.0.1", host), {}, b"x")
    listed = frozenset({80, 443, callback.port})
    async with sending(allow_loopback=False, callback_ports=listed) as sender:
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(SendError, match=f"not public|{NOT_REACHED}"):
                await sender.post(callback.url.replace("127.0.0.1", host), {}, b"x")
    assert callback.requests == []
