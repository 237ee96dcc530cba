"""Which topic URL stands for which exchange, queue and key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warrenmq.hub.engine.port import ExchangeSpec
from warrenmq.hub.errors import BadRequest, SourceMissing
from warrenmq.hub.requests import Resource
from warrenmq.hub.subscriptions.websub import is_external, key_of, normal_url, read_topic
from warrenmq.hub.topics.names import CONTENT, ENTRIES

from ..support import BASE_URL, NEWS, House, request

BASES = (BASE_URL, "https://hub.example/base")
FEED = "https://blog.example/feed.xml"


@pytest.mark.parametrize(
    ("path", "source", "key"),
    [
        ("/endpoint/x/news", NEWS, None),
        ("/endpoint/x/news?hub.topic=eu.%23", NEWS, "eu.#"),
        ("/endpoint/x/news?hub.topic=", NEWS, ""),
        ("/endpoint/x/news?a=b&hub.topic=k", NEWS, "k"),
        ("/endpoint/q/in", Resource("/", "q", "in"), None),
        ("/rabbithub/endpoint/q/in", Resource("/", "q", "in"), None),
        ("/other%2Fone/endpoint/x/a%20b", Resource("other/one", "x", "a b"), None),
    ],
)
def test_own_topics(path: str, source: Resource, key: str | None) -> None:
    topic = read_topic(BASE_URL + path, BASES)
    assert (topic.source, topic.key, topic.is_own) == (source, key, True)
    assert topic.url == BASE_URL + path


def test_an_own_topic_below_the_base_path() -> None:
    assert read_topic("https://hub.example/base/endpoint/x/news", BASES).source == NEWS


@pytest.mark.parametrize("path", ["", "/", "/hub", "/endpoint/z/news", "/endpoint/x/a/b/c/d"])
def test_an_own_url_must_be_an_endpoint(path: str) -> None:
    with pytest.raises(SourceMissing, match="none of an exchange or queue"):
        read_topic(BASE_URL + path, BASES)


@pytest.mark.parametrize(
    ("content", "exchange"), [(None, CONTENT), ("", CONTENT), ("full", CONTENT), ("new", ENTRIES)]
)
def test_topics_of_others(content: str | None, exchange: str) -> None:
    topic = read_topic(FEED, BASES, content)
    assert (topic.source, topic.key) == (Resource("/", "x", exchange), FEED)
    assert not topic.is_own


@pytest.mark.parametrize("url", [FEED, f"{BASE_URL}/endpoint/x/news"])
def test_an_unknown_content_is_refused(url: str) -> None:
    with pytest.raises(BadRequest, match="unknown") as caught:
        read_topic(url, BASES, "half")
    assert (caught.value.field, caught.value.limit) == ("hub.content", "full, new")


@pytest.mark.parametrize(
    "url",
    [
        None, "", "news", "eu.#", "ftp://blog.example/feed", "http://", "http:///feed",
        "http://blog.example/feed#latest", "http://blog.example/a feed", "http://blog.example/\0",
        "http://me:secret@blog.example/feed", "http://blog.example:65536/feed",
        "http://blog.example/" + "x" * 2_048,
    ],
)  # fmt: skip
def test_invalid_urls_are_refused(url: str | None) -> None:
    with pytest.raises(BadRequest) as caught:
        read_topic(url, BASES)
    assert caught.value.field == "hub.topic"
    assert "secret" not in f"{caught.value}{caught.value.value}"


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ("http://a.b/%7Etony/%61%2d%5F%2E", "http://a.b/~tony/a-_."),
        ("http://a.b/%2F?x=%26%23%25", "http://a.b/%2F?x=%26%23%25"),
        ("http://a.b/%2541", "http://a.b/%2541"),  # decoded once, or it would mean another
        ("http://a.b/100%", "http://a.b/100%"),
    ],
)
def test_the_normal_form_of_urls(given: str, same: str) -> None:
    assert normal_url(given) == same


def test_the_key_is_in_normal_form() -> None:
    written = read_topic("https://blog.example/%66eed.xml", BASES)
    assert written.key == read_topic(FEED, BASES).key
    assert written.url == "https://blog.example/%66eed.xml"


async def test_the_key_of_a_url_without_one(house: House) -> None:
    await house.engine.declare_exchange("/", ExchangeSpec("plain", "fanout"))
    keys = {
        path: await key_of(house.engine, read_topic(f"{BASE_URL}/endpoint/{path}", BASES))
        for path in ("x/news", "x/plain", "q/in", "x/news?hub.topic=", "x/news?hub.topic=a")
    }
    assert list(keys.values()) == ["#", "", "", "", "a"]
    with pytest.raises(SourceMissing):
        await key_of(house.engine, read_topic(f"{BASE_URL}/endpoint/x/none", BASES))


def test_requests_for_topics_of_others() -> None:
    topic = read_topic(FEED, BASES)
    wish = request(topic.source, "http://a.b/", topic.key, topic_url=topic.url)
    assert is_external(wish)
    assert not is_external(replace(wish, topic_url=""))
    assert not is_external(replace(wish, source=NEWS))
    assert not is_external(replace(wish, topic="https://blog.example/another"))
