"""Pages and data that are no feeds: what is selected is one item, and its changes are seen."""

from __future__ import annotations

import pytest

from warrenmq.hub.formats.feed_reader import read_document
from warrenmq.hub.formats.read_feed import FeedRefused, ReadFeed, ReadItem

URL = "https://example.com/status/"
PAGE = """<!DOCTYPE html><html><head><title>Status &amp; more</title></head><body>
<p class="now" data-nonce="{nonce}">All <b>{word}</b> <a href="log?utm_source={nonce}">log</a></p>
<p>Seen {nonce} times</p></body></html>"""


def read(content_type: str, body: bytes, selector: str) -> tuple[ReadFeed, ReadItem]:
    feed = read_document(URL, content_type, body, selector)
    assert isinstance(feed, ReadFeed)
    [item] = feed.items
    return feed, item


def page(word: str, nonce: int, selector: str = "p.now") -> tuple[ReadFeed, ReadItem]:
    return read("text/html; charset=utf-8", PAGE.format(word=word, nonce=nonce).encode(), selector)


def test_a_css_selector() -> None:
    feed, first = page("fine", 1)
    assert (feed.format, feed.head.title, first.item.url) == ("page", "Status & more", URL)
    assert "<b>fine</b>" in first.item.content_html
    assert 'href="https://example.com/status/log?utm_source=1"' in first.item.content_html
    _, same = page("fine", 2)
    assert (same.item.id, same.digest) == (first.item.id, first.digest)
    _, changed = page("down", 1)
    assert changed.item.id == first.item.id and changed.digest != first.digest


def test_the_whole_content() -> None:
    (_, first), (_, second) = page("fine", 1, "*"), page("fine", 2, "*")
    assert "Seen 1 times" in first.item.content_html and first.digest != second.digest
    feed, text = read("text/plain; charset=iso-8859-1", b"caf\xe9", "*")
    assert (feed.format, text.item.content_text) == ("data", "café")


def test_a_json_path() -> None:
    body = b'{"prices": [{"eur": 1, "usd": 2}, {"eur": 3}], "now": %d}'
    feed, first = read("application/json", body % 1, "$.prices[?@.usd]")
    assert (feed.format, first.item.content_text) == ("data", '{\n  "eur": 1,\n  "usd": 2\n}')
    turned = b'{"prices": [{"usd": 2, "eur": 1}]}'
    for same in (body % 2, turned):
        assert read("application/json", same, "$.prices[?@.usd]")[1] == first
    assert read("application/json", body % 1, "*")[1].digest != first.digest


@pytest.mark.parametrize(
    ("body", "selector", "reason"),
    [
        (b"<p>a</p>", "p[", "not a valid CSS selector"),
        (b"<p>a</p>", ".b", "nothing in it matches"),
        (b'{"a": 1}', "$.a[", "not a valid JSON path"),
        (b'{"a": 1}', "$.b", "nothing in it matches"),
        (b"<p>a</p>", "$.a", "not JSON"),
        (b"<p>a</p>", "p" * 501, "501 characters, 500"),
        (b"<div>" * 100 + b"a" * 20_000, "div", "select less"),
    ],
)
def test_bad_selectors_are_refused(body: bytes, selector: str, reason: str) -> None:
    with pytest.raises(FeedRefused, match=reason):
        read("text/html", body, selector)
