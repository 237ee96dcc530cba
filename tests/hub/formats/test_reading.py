"""Documents of all formats, read in a worker process."""

from __future__ import annotations

import msgspec
import pytest

from warrenmq.hub.formats.reading import NoFeed, read
from warrenmq.hub.workers.pool import Workers, WorkRefused

URL = "https://example.com/news/feed"
RSS = b"""<?xml version="1.0"?>
<rss version="2.0"><channel><title>News &amp; more</title><link>/</link><ttl>30</ttl>
<skipHours><hour>0</hour><hour>23</hour></skipHours><skipDays><day>Sunday</day></skipDays>
<cloud domain="cloud.example" port="80" path="/ping" registerProcedure="" protocol="http-post"/>
<item><guid isPermaLink="false">1</guid><link>one</link><title>First</title>
<description>&lt;a href="two"&gt;more&lt;/a&gt;</description>
<pubDate>Mon, 23 Nov 2026 10:00:00 +0100</pubDate>
<enclosure url="/a.mp3" type="audio/mpeg" length="9"/></item>
</channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom">
<title type="html">A &lt;b&gt;b&lt;/b&gt;</title>
<id>urn:f</id><updated>2026-11-23T10:00:00Z</updated><link rel="hub" href="https://hub.example/"/>
<link rel="self" href="https://example.com/self"/>
<entry><id>urn:1</id><title>One</title><updated>2026-11-23T10:00:00Z</updated>
<author><name>Ann</name><email>a@example.com</email></author>
<summary>Short.</summary><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Long</p>
</div></content><category term="x" label="X"/></entry></feed>"""


async def test_rss(workers: Workers) -> None:
    feed = await read(workers, URL, "application/rss+xml", RSS)
    assert (feed.format, feed.version, feed.notices) == ("rss", "RSS 2.0", ())
    assert (feed.head.title, feed.head.home_page_url) == ("News & more", "https://example.com/")
    assert (feed.hints.ttl_s, feed.hints.skip_hours, feed.hints.skip_days) == (1800, (0, 23), (6,))
    assert feed.cloud is not None and (feed.cloud.domain, feed.cloud.port) == ("cloud.example", 80)
    [one] = [read_item.item for read_item in feed.items]
    assert (one.id, one.url, one.title) == ("1", "https://example.com/news/one", "First")
    assert one.content_html == '<a href="https://example.com/news/two">more</a>'
    assert one.date_published == "2026-11-23T09:00:00Z"
    [audio] = one.attachments
    assert (audio.url, audio.mime_type, audio.size_in_bytes) == (
        "https://example.com/a.mp3", "audio/mpeg", 9,
    )  # fmt: skip


async def test_atom(workers: Workers) -> None:
    feed = await read(workers, URL, "application/atom+xml", ATOM)
    assert (feed.format, feed.head.title) == ("atom", "A b")
    assert (feed.self_url, feed.hub_urls) == ("https://example.com/self", ("https://hub.example/",))
    [one] = [read_item.item for read_item in feed.items]
    assert (one.summary, one.content_html, one.tags) == ("Short.", "<p>Long</p>", ["X"])
    assert [(author.name, author.url) for author in one.authors] == [
        ("Ann", "mailto:a@example.com")
    ]


async def test_a_page_is_refused_with_the_feeds_that_it_names(workers: Workers) -> None:
    page = b"""<!DOCTYPE html><title>Site</title>
    <link rel="alternate" type="application/rss+xml" title="All" href="/rss">
    <link rel="alternate" type="application/feed+json" href="/json"><p>Text"""
    with pytest.raises(NoFeed, match="names 2: https://example.com/rss") as refused:
        await read(workers, URL, "text/html", page)
    assert [(one.url, one.title) for one in refused.value.candidates] == [
        ("https://example.com/rss", "All"),
        ("https://example.com/json", ""),
    ]


@pytest.mark.parametrize(
    ("content_type", "body", "reason"),
    [
        ("text/xml", b"", "empty"),
        ("text/plain", b"hello", "no feed"),
        ("application/json", b'{"a": 1}', "no JSON Feed"),
        ("application/json", b'{"items": 1}', "no JSON Feed"),
        ("application/json", b'{"a": 1,}', r"can't be read as JSON: .*\(byte 8\)"),
        ("text/xml", b"<!DOCTYPE rss [<!ENTITY a 'b'>]>" + RSS[21:], "DOCTYPE"),
    ],
)
async def test_documents_that_are_no_feed_are_refused(
    workers: Workers, content_type: str, body: bytes, reason: str
) -> None:
    with pytest.raises(WorkRefused, match=reason):
        await read(workers, URL, content_type, body)


@pytest.mark.parametrize(
    ("given", "read_as"),
    [
        ("<img src=/b alt=c>", '<img src="https://example.com/b" alt=c>'),
        ("<a href='#n'>d</a> src=e", "<a href='#n'>d</a> src=e"),
        (
            "<source SRCSET='a,b.jpg 1x,  /c.jpg 2.5x , //d.example/e'>",
            '<source SRCSET="https://example.com/news/a,b.jpg 1x, https://example.com/c.jpg 2.5x, '
            'https://d.example/e">',
        ),
        ('<img srcset="https://d.example/e 1x, f 2x">',) * 2,
    ],
)
async def test_links_of_html_are_absolute(workers: Workers, given: str, read_as: str) -> None:
    members = {"version": "https://jsonfeed.org/version/1.1", "items": [{"content_html": given}]}
    feed = await read(workers, URL, "application/feed+json", msgspec.json.encode(members))
    assert feed.items[0].item.content_html == read_as


async def test_a_dtd_is_not_read_but_its_entities_are_known(workers: Workers) -> None:
    dtd = b'PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "file:///etc/passwd"'
    body = b"<rss version='0.91'><channel><item><title>caf&eacute;</title></item></channel></rss>"
    feed = await read(workers, URL, "text/xml", b"<!DOCTYPE rss " + dtd + b">" + body)
    assert [one.item.title for one in feed.items] == ["caf\u00e9"]


async def test_half_a_character_of_json_is_left_out(workers: Workers) -> None:
    """Programs cut texts after so many code units of UTF-16."""
    body = rb"""{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1\udfff",
        "title": "a \uD83d\uDE00 b\\ud83d c\ud83d", "content_text": "\ud83d\ud83d\ude00"}]}"""
    feed = await read(workers, URL, "application/feed+json", body)
    [one] = [found.item for found in feed.items]
    smile = "\N{GRINNING FACE}"
    assert (one.id, one.title, one.content_text) == ("1", rf"a {smile} b\ud83d c", smile)
    assert "inside a character" in feed.notices[0]


async def test_foreign_elements_are_kept_and_written_again(workers: Workers) -> None:
    body = RSS.replace(b"<ttl>", b'<g:x xmlns:g="urn:g">1</g:x><ttl>').replace(
        b"</item>",
        b'<g:price xmlns:g="urn:g" g:in="EUR">2</g:price><comments>a:b</comments></item>',
    )
    feed = await read(workers, URL, "application/rss+xml", body)
    [one] = feed.items
    assert feed.head.extensions == {"_xml": {"elements": ['<g:x xmlns:g="urn:g">1</g:x>']}}
    assert one.item.extensions == {
        "_xml": {"elements": ['<g:price xmlns:g="urn:g" g:in="EUR">2</g:price>']},
        "_rss": {"elements": ["<comments>a:b</comments>"]},
    }


@pytest.mark.thorough
async def test_of_a_hundred_thousand_items_the_first_thousand_are_read(workers: Workers) -> None:
    item = b"<item><guid>a:%d</guid><title>Some title</title></item>"
    body = RSS[: RSS.index(b"<item>")] + b"".join(item % n for n in range(100_000))
    whole = await read(workers, URL, "text/xml", body + b"</channel></rss>")
    cut = await read(workers, URL, "text/xml", body)
    for feed in (whole, cut):
        assert [one.item.id for one in feed.items] == [f"a:{n}" for n in range(1_000)]
        assert "the first" in feed.notices[0]


@pytest.mark.parametrize("end", [b"", b"</channel></rss>"])
async def test_depth_is_limited(workers: Workers, end: bytes) -> None:
    body = b"<rss><channel>" + b"<a>" * 100_000 + b"</a>" * 100_000 + end
    with pytest.raises(WorkRefused, match="200 deep"):
        await read(workers, URL, "text/xml", body)


async def test_what_is_no_item_of_a_json_feed_is_a_notice(workers: Workers) -> None:
    body = b'{"version": "https://jsonfeed.org/version/1.1", "title": "", "items": [1, {"id": 2}]}'
    feed = await read(workers, "https://example.com/", "application/feed+json", body)
    assert feed.notices == ("an item is no object, and left out",)
    assert [one.item.id for one in feed.items] == ["2"]


async def test_encoding_trouble_is_a_notice(workers: Workers) -> None:
    body = RSS.replace(b"First", b"Caf\xe9").replace(b'"1.0"', b'"1.0" encoding="utf-8"')
    feed = await read(workers, URL, "text/xml", body)
    assert feed.items[0].item.title == "Café" and "encoding" in feed.notices[0]


@pytest.mark.thorough
@pytest.mark.parametrize("body", [RSS, ATOM])
async def test_a_feed_that_stops_being_well_formed_has_the_same_items(
    workers: Workers, body: bytes
) -> None:
    whole = await read(workers, URL, "application/xml", body)
    broken = await read(workers, URL, "application/xml", body + b"<p>& more")
    assert "not well-formed" in broken.notices[0]
    assert [(one.item.id, one.digest) for one in broken.items] == [
        (one.item.id, one.digest) for one in whole.items
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("body", [RSS, ATOM])
async def test_of_a_feed_that_ends_anywhere_no_half_entry_is_read(
    workers: Workers, body: bytes
) -> None:
    whole = await read(workers, URL, "application/xml", body)
    for length in range(body.index(b"1</"), len(body) - 1, 7):
        cut = await read(workers, URL, "application/xml", body[:length])
        assert not cut.is_whole and "ends early" in cut.notices[0]
        assert [one.digest for one in cut.items] in ([], [one.digest for one in whole.items])


@pytest.mark.parametrize("piece", ["<a", "<" + "a" * 500_000, "=" + " " * 500_000, "a.", "<p "])
@pytest.mark.parametrize("tag", ["title", "author", "description"])
async def test_no_text_takes_the_square_of_its_length(
    workers: Workers, tag: str, piece: str
) -> None:
    """It would take all the time that a worker process has."""
    text = piece * (1_000_000 // len(piece))
    body = RSS.replace(b"</item>", f"<{tag}><![CDATA[{text}]]></{tag}></item>".encode(), 1)
    assert (await read(workers, URL, "text/xml", body)).items
