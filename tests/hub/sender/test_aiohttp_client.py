"""The sender against servers that behave as the world does (reliability.md F17)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.support.http import Answer as Scripted
from tests.support.http import Callback
from warren.hub.guard.guard import Guard
from warren.hub.sender.aiohttp_client import AiohttpSender
from warren.hub.sender.port import SendError, TimedOut
from warren.hub.settings import HubSettings

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


@contextlib.asynccontextmanager
async def sending(**given: Any) -> AsyncIterator[AiohttpSender]:
    settings = HubSettings(**{"allow_loopback": True, **given})
    sender = AiohttpSender(settings, Guard(settings))
    try:
        yield sender
    finally:
        await sender.close()


@contextlib.asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """A raw server; gives its URL."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handler(reader, writer)
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/cb"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


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
    assert 3 <= connections <= 4


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


@pytest.mark.parametrize(
    ("start", "unit"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"1;" + b"x" * 999 + b"\r\nz\r\n",
        ),
    ],
    ids=["interim", "head", "chunks"],
)
async def test_an_answer_without_end_is_cut(start: bytes, unit: bytes) -> None:
    """Its time is not what ends it, and it is no closed connection to try once more."""
    connections = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await read_request(reader)
        writer.write(start)
        while True:
            writer.write(unit * 1_000)
            await writer.drain()

    async with serving(pour) as url, sending(total_timeout_s=20) as sender:
        with pytest.raises(SendError) as caught:
            await sender.post(url, {}, b"x")
    assert "in time" not in str(caught.value)
    assert connections == 1


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


async def test_a_body_that_never_ends_within_its_time() -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.02)

    async with serving(trickle) as url, sending(total_timeout_s=0.2) as sender:
        with pytest.raises(TimedOut, match="in time"):
            await sender.post(url, {}, b"x")


async def test_a_target_that_hangs() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with serving(hang) as url, sending(total_timeout_s=0.1) as sender:
        with pytest.raises(TimedOut, match="in time"):
            await sender.post(url, {}, b"x")


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 99999 What\r\n\r\n", b"SSH-2.0-OpenSSH\r\n", b"\x15\x03\x01\x00\x02"]
)
async def test_a_target_that_talks_nonsense(answer: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)
        await writer.drain()

    async with serving(talk) as url, sending() as sender:
        with pytest.raises(SendError):
            await sender.post(url, {}, b"x")


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
            with pytest.raises(SendError, match="not allowed|not public"):
                await sender.post(callback.url.replace("127.0.0.1", host), {}, b"x")
    listed = frozenset({80, 443, callback.port})
    async with sending(allow_loopback=False, callback_ports=listed) as sender:
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(SendError, match="not public"):
                await sender.post(callback.url.replace("127.0.0.1", host), {}, b"x")
    assert callback.requests == []
