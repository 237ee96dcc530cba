"""How topics are asked for, and what is made of the answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.support.http import Answer, Callback
from tests.support.settings import hub_settings
from warrenmq.core.clock import ManualClock
from warrenmq.hub.fetch.fetcher import Fetcher
from warrenmq.hub.guard.guard import Guard
from warrenmq.hub.topics.source import TopicFailed, TopicSource
from warrenmq.hub.topics.topic import Topic
from warrenmq.hub.workers.pool import Workers

VALIDATORS = {"ETag": 'W/"1"', "Last-Modified": "Sat, 21 Nov 2026 00:00:00 GMT"}


@pytest.fixture
async def source(workers: Workers) -> AsyncIterator[TopicSource]:
    settings = hub_settings(allow_loopback=True, base_urls=("https://hub.example/base",))
    fetcher = Fetcher(settings, Guard(settings))

    async def made() -> Fetcher:
        return fetcher

    yield TopicSource(made, workers, settings, ManualClock())
    await fetcher.close()


@pytest.fixture
def topic(callback: Callback) -> Topic:
    callback.default = Answer(headers={"Content-Type": "text/plain", **VALIDATORS}, body=b"text")
    return Topic("k", callback.url)


async def test_validators_are_sent_back_unchanged(
    source: TopicSource, callback: Callback, topic: Topic
) -> None:
    etag, last_modified = VALIDATORS.values()
    fetched = await source.fetch(topic, 7)
    assert fetched.document is not None
    assert (fetched.document.body, fetched.document.content_type) == (b"text", "text/plain")
    assert (fetched.etag, fetched.last_modified) == (etag, last_modified)
    callback.default = Answer(304)
    known = replace(topic, etag=etag, last_modified=last_modified)
    assert await source.fetch(known, 1) == replace(fetched, document=None)
    first, second = (one.headers for one in callback.requests)
    assert first["User-Agent"] == "Warren (+https://hub.example/base/hub; 7 subscribers)"
    assert "If-None-Match" not in first and "If-Modified-Since" not in first
    assert (second["If-None-Match"], second["If-Modified-Since"]) == (etag, last_modified)


async def test_unreliable_validators_are_dropped(
    source: TopicSource, callback: Callback, topic: Topic
) -> None:
    for headers in ({**VALIDATORS, "Expires": "0"}, {**VALIDATORS, "ETag": "x" * 2_000}):
        callback.default = Answer(headers=headers, body=b"text")
        fetched = await source.fetch(topic, 1)
        assert (fetched.etag, fetched.last_modified) == ("", "")


@pytest.mark.parametrize(
    ("answer", "reason", "wait_s", "is_final"),
    [
        (Answer(404), "answered 404", 0.0, False),
        (Answer(410), "answered 410", 0.0, True),
        (Answer(503, headers={"Retry-After": "90"}), "answered 503", 90.0, False),
        (Answer(429, headers={"Retry-After": "999999999"}), "answered 429", 86_400.0, False),
        (Answer(304), "answered 304", 0.0, False),
        (Answer(204), "answered 204", 0.0, False),
        (Answer(200), "empty", 0.0, False),
        (Answer(headers={"Content-Type": "a/" + "b" * 254}, body=b"b"), "255 bytes", 0.0, False),
        (Answer(302, headers={"Location": "http://10.0.0.1/"}), "not public", 0.0, False),
    ],
)
async def test_failures(
    source: TopicSource, callback: Callback, topic: Topic,
    answer: Answer, reason: str, wait_s: float, is_final: bool,
) -> None:  # fmt: skip
    callback.default = answer
    with pytest.raises(TopicFailed, match=reason) as caught:
        await source.fetch(topic, 1)
    assert (caught.value.wait_s, caught.value.is_final) == (wait_s, is_final)
