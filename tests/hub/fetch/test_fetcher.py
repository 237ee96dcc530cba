"""Fetching from servers that behave badly too; real HTTP on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.hub.support import until
from tests.support.http import Answer, Callback
from tests.support.settings import hub_settings
from warrenmq.hub.fetch.fetcher import MAX_HOPS, Fetcher
from warrenmq.hub.fetch.page import FetchFailed
from warrenmq.hub.guard.guard import Guard


@contextlib.asynccontextmanager
async def fetching(**given: Any) -> AsyncIterator[Fetcher]:
    settings = hub_settings(**{"allow_loopback": True, **given})
    fetcher = Fetcher(settings, Guard(settings))
    try:
        yield fetcher
    finally:
        await fetcher.close()


def to(location: str, status: int = 302) -> Answer:
    return Answer(status, headers={"Location": location})


async def test_a_page_is_returned_unchanged(callback: Callback) -> None:
    link = {"Content-Type": "text/plain; charset=x", "ETag": 'W/"a"', "Link": "<a>; rel=hub"}
    callback.default = Answer(headers=link, body=b"\xff\r\n")
    async with fetching() as fetcher:
        page = await fetcher.get(callback.url, {"If-None-Match": '"\xe9"', "User-Agent": "me"})
    assert (page.status, page.url, page.body) == (200, callback.url, b"\xff\r\n")
    assert page.first("content-type") == "text/plain; charset=x"
    assert page.first("etag") == 'W/"a"' and page.all("link") == ["<a>; rel=hub"]
    asked = callback.requests[0]
    assert asked.headers["User-Agent"] == "me" and asked.method == "GET"
    assert asked.headers["If-None-Match"].encode("utf-8", "surrogateescape") == b'"\xe9"'
    assert asked.headers["Accept-Encoding"] == "gzip, deflate"


async def test_redirects_are_followed(callback: Callback) -> None:
    callback.script(to("/b#part", 301), to("c", 307), to(f"{callback.url}/d", 308), to("?e", 303))
    async with fetching() as fetcher:
        page = await fetcher.get(callback.url, {"User-Agent": "me"})
    assert page.url == f"http://127.0.0.1:{callback.port}/callback/d?e"
    paths = [one.raw_path for one in callback.requests]
    assert paths == ["/callback", "/b", "/c", "/callback/d", "/callback/d?e"]
    assert {one.headers["User-Agent"] for one in callback.requests} == {"me"}


async def test_redirects_are_limited(callback: Callback) -> None:
    callback.default = to("/callback")
    async with fetching() as fetcher:
        with pytest.raises(FetchFailed, match="too many redirects"):
            await fetcher.get(callback.url, {})
    assert len(callback.requests) == MAX_HOPS + 1


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://10.0.0.1/", "not public"),
        ("http://169.254.169.254/latest/", "not public"),
        ("http://[64:ff9b::7f00:1]/", "not public"),
        ("http://0x7f000001/", "no plain address"),
        ("file:///etc/passwd", "scheme 'file'"),
        ("http://a:b@127.0.0.1/", "user information"),
        ("http://127.0.0.1:15672/x", "own address"),
        ("http://[", "no URL: Invalid IPv6"),
        ("http://a:99999/", "can't be read: Port out of range"),
    ],
)
async def test_each_hop_is_vetted(callback: Callback, location: str, reason: str) -> None:
    callback.script(to("/next"), to(location))
    async with fetching(base_urls=("http://127.0.0.1:15672",)) as fetcher:
        with pytest.raises(FetchFailed, match=reason):
            await fetcher.get(callback.url, {})
    assert len(callback.requests) == 2


@pytest.mark.parametrize("status", [302, 304, 404, 503])
async def test_other_answers_have_no_body(callback: Callback, status: int) -> None:
    callback.default = Answer(
        status, headers={"Retry-After": "7"}, body=b"" if status == 304 else b"x"
    )
    async with fetching() as fetcher:
        page = await fetcher.get(callback.url, {})
    assert (page.status, page.first("retry-after"), page.body) == (status, "7", b"")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(body=b"x" * 1_001), "longer than 1000 bytes"),
        (Answer(body=b"x" * 1_000_000), "longer than"),
        (Answer(headers={"Content-Encoding": "gzip"}, body=gzip.compress(b"x" * 1_001)), "decoded"),
        (Answer(headers={"Content-Encoding": "br"}, body=b"x"), "'br'"),
        (Answer(hang=True), "not fetched within 0.5 s"),
    ],
    ids=["long", "huge", "bomb", "unknown", "hang"],
)
async def test_limits(callback: Callback, answer: Answer, reason: str) -> None:
    callback.default = answer
    async with fetching(fetch_max_bytes=1_000, fetch_timeout_s=0.5) as fetcher:
        with pytest.raises(FetchFailed, match=reason):
            await fetcher.get(callback.url, {})


async def test_a_host_that_hangs_leaves_slots_to_others(callback: Callback) -> None:
    async with fetching(fetch_concurrency=3, fetch_per_domain=2) as fetcher:
        callback.default = Answer(hang=True)
        hanging = callback.url.replace("127.0.0.1", "localhost")
        asked = [asyncio.create_task(fetcher.get(hanging, {})) for _ in range(5)]
        await until(lambda: len(callback.requests) == 2, "request")
        callback.default = Answer()
        assert (await fetcher.get(callback.url, {})).status == 200
        assert len(callback.requests) == 3 and not any(one.done() for one in asked)
        for one in asked:
            one.cancel()
        await asyncio.wait(asked)
