"""Feeds that are not well-formed reach all of their subscribers (WebSub 7)."""

from __future__ import annotations

import pytest

from tests.hub.topics.feeds import ATOM_TYPE, JSON_TYPE, RSS_TYPE, atom, rss
from warrenmq.hub.topics.document_reader import read_document
from warrenmq.hub.topics.entries import MAX_ENTRIES

DECLARED = b'<?xml version="1.0" encoding="utf-8"?>'
OLD, NEW = "<guid>old</guid><title>same</title>", "<guid>new</guid><title>a &amp; b</title>"
BOTH = DECLARED + rss(NEW, OLD)
JSON_BOTH = (
    b'{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "new"}, {"id": "old"}]}'
)

# What is wrong with the feed, as its publisher sends it.
BROKEN = {
    "a blank line first": b"\r\n" + BOTH,
    "blanks and a comment first": b" \t<!-- made by hand -->\n" + BOTH,
    "a mark and a line end": b"\xef\xbb\xbf\n" + BOTH,
    "two marks": b"\xef\xbb\xbf\xef\xbb\xbf" + BOTH,
    "&nbsp;": BOTH.replace(b"a &amp; b", b"a&nbsp;b"),
    "a bare &": BOTH.replace(b"&amp;", b"&"),
    "a control character": BOTH.replace(b"&amp;", b"\x0b\x00"),
    "a control character first": b"\x08" + BOTH,
    "an entity": b'<!doctype rss [<!ENTITY amp2 "b">]>' + rss(NEW.replace("amp", "amp2"), OLD),
    "HTML that is not escaped": BOTH.replace(b"&amp;", b"<br>"),
    "an undeclared prefix": BOTH.replace(b"<title>a", b"<media:x/><title>a"),
    "an end tag of another name": BOTH.replace(b"b</title>", b"b</titel>"),
    "an unquoted attribute": BOTH.replace(b"<title>a", b"<title type=text>a"),
    "bytes of another encoding": BOTH.replace(b"&amp;", b"& \xe9"),
    "an unknown encoding": BOTH.replace(b"utf-8", b"klingon").replace(b"&amp;", b"&"),
    "elements 1,000 deep": BOTH.replace(b"&amp;", b"<b>" * 1_000),
    "an end tag too many": BOTH.replace(b"</rss>", b"</channel></rss>"),
    "something after its end": BOTH + b"<script>count()</script>",
    "no end": BOTH.removesuffix(b"</channel></rss>"),
    "a cut item after the others": BOTH.removesuffix(b"</channel></rss>") + b"<item><guid>cut",
    "a cut comment": BOTH.replace(b"</channel>", b"<!-- </channel>"),
}
# The type is wrong: content, type.
MISLABELLED = {
    "RSS as JSON": (BOTH, "application/json"),
    "RSS as JSON Feed": (BOTH, JSON_TYPE),
    "RSS as an image": (BOTH, "image/png"),
    "RSS as no type at all": (BOTH, ";;"),
    "JSON Feed as RSS": (JSON_BOTH, RSS_TYPE),
    "JSON Feed as text": (b"\n" + JSON_BOTH, "text/plain"),
}
DOCTYPE = BOTH.replace(b"<rss", b'<!DOCTYPE rss SYSTEM "http://a/rss-0.91.dtd">\n<rss')
CASES = {
    "a DOCTYPE": (DOCTYPE, RSS_TYPE),
    **{name: (body, RSS_TYPE) for name, body in BROKEN.items()},
    **MISLABELLED,
}
# Nothing in them can be told apart.
UNREADABLE = {
    "cut in its only item": (BOTH[: BOTH.index(b"a &amp;")], RSS_TYPE),
    "an error page": (b"<!DOCTYPE html><p>We are <b>down", RSS_TYPE),
    "text": (b"no feed", ATOM_TYPE),
    "UTF-16 and a bare &": (BOTH.replace(b"amp;", b"").decode().encode("utf-16"), "text/xml"),
    "cut JSON": (JSON_BOTH[:-1], JSON_TYPE),
    "a control character in JSON": (JSON_BOTH.replace(b"new", b"\x01"), "application/json"),
    "a root alone": (b"<rss>", RSS_TYPE),
}  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
def test_a_broken_feed_is_compared_entry_by_entry(kind: str) -> None:
    body, content_type = CASES[kind]
    known = read_document(RSS_TYPE, rss(OLD), {}).known
    if body.lstrip().startswith(b"{"):
        known = read_document(JSON_TYPE, JSON_BOTH.replace(b'{"id": "new"}, ', b""), {}).known
    document = read_document(content_type, body, known)
    news = document.news or b""
    assert (document.body, len(document.known)) == (body, 2)
    assert b"new" in news and b"old" not in news and b"same" not in news
    assert bool(document.notice) is (kind in BROKEN)
    assert read_document(content_type, body, document.known).news is None


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_can_not_be_read_is_sent_whole(kind: str) -> None:
    body, content_type = UNREADABLE[kind]
    known = read_document(RSS_TYPE, rss(OLD), {}).known
    document = read_document(content_type, body, known)
    assert (document.news, document.known) == (body, known)
    assert "subscribers to them get it whole: it " in document.notice


def test_an_entry_without_a_fault_stays_known_when_its_feed_is_mended() -> None:
    broken = read_document(ATOM_TYPE, atom(("1", "a"), ("2", "b & c")), {})
    mended = read_document(ATOM_TYPE, atom(("1", "a"), ("2", "b &amp; c")), broken.known)
    assert b">1<" not in (mended.news or b"") and b">2<" in (mended.news or b"")


def test_tags_in_comments_and_cdata_are_text() -> None:
    shown = "<!-- <item> --><guid>1</guid><title><![CDATA[</item>]]> & </title>"
    document = read_document(RSS_TYPE, b"\n" + rss(shown, OLD), {})
    assert len(document.known) == 2


def test_broken_entries_beyond_the_limit_are_left_out() -> None:
    items = [f"<guid>{number}</guid>" for number in range(MAX_ENTRIES + 10)]
    document = read_document(RSS_TYPE, b"\n" + rss(*items), {})
    assert document.news == b"\n" + rss(*items[:MAX_ENTRIES])
    assert f"only the first {MAX_ENTRIES}" in document.notice
