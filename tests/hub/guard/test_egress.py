"""All requests through an operator's proxy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.hub.guard.test_dialler import Resolver
from tests.hub.support import Posting, serving
from tests.support.http import Callback
from tests.support.settings import hub_settings
from warrenmq.hub.errors import CallbackRefused
from warrenmq.hub.fetch.fetcher import Fetcher
from warrenmq.hub.guard.egress import ProxyDialler
from warrenmq.hub.guard.lookups import Purpose
from warrenmq.hub.sender.http_sender import HttpSender
from warrenmq.hub.sender.port import SendError
from warrenmq.hub.verification.verify import Verifier

LIVING = "127.0.0.1"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Proxy:
    """Connects whatever name it is asked for to this machine; `answer` replaces that."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer = b""
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head.splitlines()[0])
        if self.answer:
            writer.write(self.answer)
            writer.close()
            return
        port = int(head.split()[1].rpartition(":")[2])
        inner_reader, inner_writer = await asyncio.open_connection(LIVING, port)
        writer.write(ESTABLISHED)
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65_536):
            sink.write(data)
    finally:
        sink.close()


@asynccontextmanager
async def proxy_server() -> AsyncIterator[Proxy]:
    proxy = Proxy()
    async with serving(proxy.serve) as url:
        proxy.url = url.removesuffix("/cb")
        yield proxy


async def test_all_requests_go_through_the_proxy(callback: Callback) -> None:
    async with proxy_server() as proxy:
        guard = Resolver(LIVING)
        settings = hub_settings(allow_loopback=True, egress_proxy=proxy.url)
        url = f"http://target.invalid:{callback.port}/a"
        sender = HttpSender(settings, guard)
        assert (await Posting(sender).post(url, {}, b"x")).status == 200
        assert await Verifier(settings, guard).notify(url, url) == 200
        assert (await Fetcher(settings, guard).get(url, {})).status == 200
        asked = f"CONNECT target.invalid:{callback.port} HTTP/1.1"
        assert proxy.asked == [asked] * 3
        assert callback.deliveries[0].headers["host"] == f"target.invalid:{callback.port}"
        await sender.close()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "answers 407 for target.invalid"),
        (b"HTTP/1.1 403 Denied\r\nContent-Length: 6\r\n\r\ndenied", "answers 403"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "the egress proxy answers b'SSH"),
        (b"HTTP/1.1 200 OK\r\n", "cut short or too long"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 20_000, "cut short or too long"),
        (ESTABLISHED + b"early", "has a body"),
    ],
)
async def test_a_refusal_is_a_failed_attempt(answer: bytes, reason: str) -> None:
    async with proxy_server() as proxy:
        proxy.answer = answer
        settings = hub_settings(allow_loopback=True, egress_proxy=proxy.url)
        sender = HttpSender(settings, Resolver(LIVING))
        with pytest.raises(SendError, match=reason):
            await Posting(sender).post("http://target.invalid:8000/", {}, b"x")
        await sender.close()


async def test_targets_refused_by_the_hub_are_not_sent_to_the_proxy() -> None:
    async with proxy_server() as proxy:
        dialler = ProxyDialler(Resolver("10.0.0.1"), 5.0, Purpose.DELIVER, proxy.url)
        with pytest.raises(CallbackRefused, match="not public"):
            await dialler.connect("inner.invalid", 80)
        assert proxy.asked == []
    gone = ProxyDialler(Resolver(LIVING), 5.0, Purpose.DELIVER, proxy.url)
    with pytest.raises(ConnectionRefusedError):
        await gone.connect("target.invalid", 8000)
