"""What the HTTP listener refuses, over real sockets (reliability.md section 6, 33-38)."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from weakref import ref

import pytest

from warrenmq.app.access.local_requests import is_gone
from warrenmq.app.http import guard as http_guard
from warrenmq.app.http import progress as http_progress
from warrenmq.app.http.disconnects import when_gone
from warrenmq.app.http.listen import listen, port_of
from warrenmq.app.http.server import HttpServer
from warrenmq.app.requests.body import read_body
from warrenmq.core.resources.partial_content import PartialContents

LIMIT = 100_000
HOST = b"Host: hub\r\n"


@dataclass
class Echo:
    """Answers with the size of the body, once it may."""

    bodies: list[bytes] = field(default_factory=list)
    headers: list[list[tuple[bytes, bytes]]] = field(default_factory=list)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    held: Callable[[], object] = lambda: None
    """What the client's end would have called, while it is there."""

    async def __call__(self, scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        if scope["path"] == "/early":
            await self._answer(send, b"early")
            return
        if scope["path"] == "/held":
            held = type("Held", (), {})()
            self.held = ref(held)
            when_gone(scope, lambda: held)
            await self._answer(send, b"held")
            return
        if scope["path"] == "/hang-up":
            while not is_gone(scope):
                await asyncio.sleep(0)
            self.bodies.append(b"gone")
            return
        if scope["path"] == "/late":
            await self.go.wait()
        body = await read_body(receive, 10**9, PartialContents(), "anybody")
        await self.go.wait()
        self.bodies.append(body)
        self.headers.append(scope["headers"])
        await self._answer(send, b"%s %d" % (scope["path"].encode(), len(body)))

    async def _answer(self, send, text: bytes) -> None:  # type: ignore[no-untyped-def]
        length = (b"content-length", str(len(text)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": text})

    async def exchange(self, *parts: bytes) -> bytes:
        """Sends the parts and reads until the server closes, which must be soon."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
            return await asyncio.wait_for(reader.read(), 10)
        finally:
            writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    app = Echo()
    app.go.set()
    listeners = listen("127.0.0.1", 0, "http")
    app.port = port_of(listeners)
    server = HttpServer(app, max_body_bytes=LIMIT, drain_s=1)
    await server.start(listeners)
    yield app
    await server.stop()


@pytest.fixture
def protocols(monkeypatch: pytest.MonkeyPatch) -> list[http_guard.HttpGuard]:
    """The protocols of the connections made."""
    made: list[http_guard.HttpGuard] = []
    original = http_guard.HttpGuard.connection_made

    def connection_made(self: http_guard.HttpGuard, transport: asyncio.Transport) -> None:
        made.append(self)
        original(self, transport)

    monkeypatch.setattr(http_guard.HttpGuard, "connection_made", connection_made)
    return made


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def answers(received: bytes) -> list[bytes]:
    return [b"HTTP/1.1 " + part for part in received.split(b"HTTP/1.1 ")[1:]]


def refused(answer: bytes, expected: int) -> str:
    """The reason, of an answer that is one problem document and nothing else."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert status(answer) == expected, answer
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head
    problem = json.loads(body)
    assert problem["status"] == expected
    return str(problem["detail"])


def close(head: bytes) -> bytes:
    return head + b"Connection: close\r\n\r\n"


MALFORMED = {
    "NUL in a name": b"A\0: b\r\n\r\n",
    "two encodings": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "unknown encoding": b"Transfer-Encoding: gzip\r\n\r\n",
    "chunk size without CR": b"Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
}
"""More are in tests/conformance/test_bad_input_http.py."""


@pytest.mark.parametrize("rest", MALFORMED.values(), ids=MALFORMED)
async def test_malformed(echo: Echo, rest: bytes) -> None:
    refused(await echo.exchange(b"POST /a HTTP/1.1\r\n" + HOST + rest), 400)
    assert echo.bodies == []


@pytest.mark.parametrize(
    "head",
    [
        b"GET /a HTTP/1.1\r\nHost:\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: user@hub\r\n\r\n",
        b"GET /a\0b HTTP/1.1\r\nHost: hub\r\n\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\nHost: hub\r\n\r\n",
        b"GET /a HTTP/1.2\r\nHost: hub\r\n\r\n",
        b"GET /a\r\n\r\n",
        b"CONNECT hub:80 HTTP/1.1\r\nHost: hub\r\n\r\n",
        b"POST /a HTTP/1.0\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"AMQP\x00\x00\x09\x01",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
    ],
)
async def test_malformed_start(echo: Echo, head: bytes) -> None:
    refused(await echo.exchange(head), 400)


async def test_http_1_0_needs_no_host(echo: Echo) -> None:
    assert (await echo.exchange(b"GET /a HTTP/1.0\r\n\r\n")).endswith(b"/a 0")


class TestHead:
    async def test_just_small_enough(self, echo: Echo) -> None:
        head = b"GET /a HTTP/1.1\r\n" + HOST + b"A: " + b"a" * 16_000 + b"\r\n"
        assert (await echo.exchange(close(head))).endswith(b"/a 0")

    @pytest.mark.parametrize(("fields", "expected"), [(98, 200), (99, 431)])
    async def test_fields(self, echo: Echo, fields: int, expected: int) -> None:
        head = b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r\n" * fields
        assert status(await echo.exchange(close(head))) == expected

    async def test_half_a_head_after_a_request(
        self, echo: Echo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(http_progress, "MAX_STALL_S", 0.1)
        answer = await echo.exchange(b"GET /a HTTP/1.1\r\n" + HOST + b"\r\nGET /b")
        first, _, second = answer.partition(b"/a 0")
        assert status(first) == 200
        refused(second, 408)

    async def test_an_idle_connection_is_not_refused(
        self, echo: Echo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(http_progress, "MAX_STALL_S", 0.1)
        reader, writer = await asyncio.open_connection("127.0.0.1", echo.port)
        for path in (b"/a", b"/b"):
            writer.write(b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"\r\n")
            await reader.readuntil(path + b" 0")
            # Another connection has been refused in the meantime.
            refused(await echo.exchange(b"GET / HTTP/1.1\r\nHost: h"), 408)
        writer.close()

    async def test_trailers_are_not_headers(self, echo: Echo) -> None:
        head = b"POST /a HTTP/1.1\r\n" + HOST + b"Connection: close\r\n"
        body = b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nAuthorization: b\r\n\r\n"
        assert (await echo.exchange(head + body)).endswith(b"/a 1")
        assert b"authorization" not in dict(echo.headers[0])


class TestBody:
    def chunked(self, size: int, chunk: int = 5_000) -> bytes:
        chunks = [min(chunk, size - start) for start in range(0, size, chunk)]
        body = b"".join(b"%x\r\n%s\r\n" % (length, b"x" * length) for length in chunks)
        head = b"POST /a HTTP/1.1\r\n" + HOST + b"Connection: close\r\n"
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"

    def sized(self, size: int, declared: int | None = None) -> bytes:
        length = b"Content-Length: %d\r\n" % (size if declared is None else declared)
        return close(b"POST /a HTTP/1.1\r\n" + HOST + length) + b"x" * size

    async def test_chunks_may_be_small_and_have_extensions(self, echo: Echo) -> None:
        whole = self.chunked(LIMIT, chunk=1)
        assert (await echo.exchange(whole)).endswith(b"/a 100000")
        longer = self.chunked(10).replace(b"a\r\n", b"a;name=value\r\n")
        assert (await echo.exchange(longer)).endswith(b"/a 10")

    @pytest.mark.parametrize("extension", [10**5, 5_000])
    async def test_extensions_of_chunks_are_bounded(self, echo: Echo, extension: int) -> None:
        head = self.chunked(0).removesuffix(b"0\r\n\r\n")
        chunk = b"1;" + b"x" * extension + b"\r\ny\r\n"
        assert "too long" in refused(await echo.exchange(head, *[chunk] * 100), 400)
        assert echo.bodies == []

    async def test_answered_while_the_client_still_sends(self, echo: Echo) -> None:
        """The answer must not be lost in a connection reset."""
        refused(await echo.exchange(self.sized(20_000_000)), 413)
        refused(await echo.exchange(self.chunked(20_000_000)), 413)

    async def test_stalled(self, echo: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(http_progress, "MAX_STALL_S", 0.1)
        refused(await echo.exchange(self.sized(10, declared=20)), 408)
        assert echo.bodies == []

    async def test_one_that_was_not_asked_for_yet(
        self, echo: Echo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(http_progress, "MAX_STALL_S", 0.1)
        echo.go.clear()
        reader, writer = await asyncio.open_connection("127.0.0.1", echo.port)
        expecting = b"Expect: 100-continue\r\nContent-Length: 1\r\n"
        writer.write(close(b"POST /late HTTP/1.1\r\n" + HOST + expecting))
        # Another connection has been refused in the meantime.
        refused(await echo.exchange(b"GET / HTTP/1.1\r\nHost: h"), 408)
        echo.go.set()
        assert b" 100 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"x")
        assert (await asyncio.wait_for(reader.read(), 10)).endswith(b"/late 1")
        writer.close()

    async def test_endless_after_an_early_answer(self, echo: Echo) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", echo.port)
        writer.write(b"POST /early HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n")
        await reader.readuntil(b"early")
        for _ in range(6):
            writer.write(b"4e20\r\n" + b"x" * 20_000 + b"\r\n")
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()


class TestPipelining:
    def requests(self, numbers: range) -> bytes:
        parts = []
        for number in numbers:
            body = b"\r\n\r\n" * number
            length = b"Content-Length: %d\r\n\r\n" % len(body)
            parts.append(b"POST /%d HTTP/1.1\r\n" % number + HOST + length + body)
        return b"".join(parts)

    async def test_not_read_while_some_is_unread(
        self, echo: Echo, protocols: list[http_guard.HttpGuard]
    ) -> None:
        echo.go.clear()
        requests = self.requests(range(1, 2)) * 200_000
        answering = asyncio.ensure_future(echo.exchange(requests))
        await until(lambda: bool(protocols and protocols[0].flow.stays_paused))
        for _ in range(100):
            protocols[0].cycle.flow.resume_reading()
            await asyncio.sleep(0)
        assert len(protocols[0]._unparsed) < 1_000_000
        answering.cancel()
        await asyncio.wait({answering})

    async def test_a_bad_request_in_a_pipeline_is_refused_after_the_answers_before(
        self, echo: Echo
    ) -> None:
        request = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
        received = answers(await echo.exchange(request * 1_000 + b"BAD\r\n\r\n" + request * 1_000))
        assert len(received) == 1_001
        refused(received[-1], 400)

    async def test_a_request_that_waits_in_a_pipeline_does_not_time_out(
        self, echo: Echo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(http_progress, "MAX_STALL_S", 0.1)
        echo.go.clear()
        request = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
        large = close(b"POST /large HTTP/1.1\r\n" + HOST + b"Content-Length: 50000\r\n")
        answering = asyncio.ensure_future(echo.exchange(request + large + b"x" * 50_000))
        # Another connection has been refused in the meantime.
        refused(await echo.exchange(b"GET / HTTP/1.1\r\nHost: h"), 408)
        echo.go.set()
        assert (await answering).endswith(b"/large 50000")


class TestOthers:
    async def test_earlier_requests_get_their_answers_first(self, echo: Echo) -> None:
        echo.go.clear()
        one, two = (b"GET /%d HTTP/1.1\r\n" % number + HOST + b"\r\n" for number in (1, 2))
        answering = asyncio.ensure_future(echo.exchange(one + two, b"BAD\r\n\r\n"))
        await asyncio.wait({answering}, timeout=0.1)
        echo.go.set()
        first, second, third = (
            b"HTTP/1.1 " + part for part in (await answering).split(b"HTTP/1.1 ")[1:]
        )
        assert first.endswith(b"/1 0")
        assert second.endswith(b"/2 0")
        refused(third, 400)

    async def test_a_body_that_is_too_large_is_refused_after_the_answer_before(
        self, echo: Echo
    ) -> None:
        echo.go.clear()
        one = b"GET /1 HTTP/1.1\r\n" + HOST + b"\r\n"
        answering = asyncio.ensure_future(echo.exchange(one + TestBody().chunked(LIMIT + 1)))
        await asyncio.wait({answering}, timeout=0.1)
        echo.go.set()
        first, second = answers(await answering)
        assert first.endswith(b"/1 0")
        refused(second, 413)
        assert echo.bodies == [b""]

    async def test_upgrade_is_ignored(self, echo: Echo) -> None:
        """Java's client offers h2c with every request, those with a body too."""
        reader, writer = await asyncio.open_connection("127.0.0.1", echo.port)
        offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
        request = b"POST /a HTTP/1.1\r\n" + HOST + offer
        sized = request + b"Content-Length: 3\r\n\r\nabc"
        chunked = request + b"Transfer-Encoding: chunked\r\n\r\n3\r\ndef\r\n0\r\n\r\n"
        for data in (sized, chunked + sized, request + b"\r\n"):
            writer.write(data)
        for size in (3, 3, 3, 0):
            assert b"200" in await reader.readuntil(b"/a %d" % size)
        assert echo.bodies == [b"abc", b"def", b"abc", b""]
        writer.close()


async def test_a_request_can_ask_whether_its_client_has_hung_up(echo: Echo) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", echo.port)
    writer.write(b"GET /hang-up HTTP/1.1\r\n" + HOST + b"\r\n")
    await writer.drain()
    await asyncio.sleep(0)
    assert echo.bodies == []
    writer.close()
    await until(lambda: echo.bodies == [b"gone"])


async def test_a_kept_connection_holds_nothing_of_its_last_answer(echo: Echo) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", echo.port)
    writer.write(b"GET /held HTTP/1.1\r\n" + HOST + b"\r\n")
    await reader.readuntil(b"held")
    await until(lambda: echo.held() is None)
    writer.close()


async def test_requests_leave_nothing_to_the_garbage_collector(echo: Echo) -> None:
    """It would look at everything else that is young each time."""
    reader, writer = await asyncio.open_connection("127.0.0.1", echo.port)

    async def ask(times: int) -> None:
        for _ in range(times):
            writer.write(b"GET /early HTTP/1.1\r\n" + HOST + b"\r\n")
            assert (await reader.readuntil(b"early")).startswith(b"HTTP/1.1 200")

    await ask(2)
    gc.collect()
    gc.disable()
    try:
        await ask(50)
        assert gc.collect() < 50
    finally:
        gc.enable()
        writer.close()
        await writer.wait_closed()
