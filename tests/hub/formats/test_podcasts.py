"""What podcasts and videos say of themselves has its place in each format."""

from __future__ import annotations

from tests.hub.formats.rules import CHECKS
from warrenmq.hub.formats.feed_reader import read_document
from warrenmq.hub.formats.model import Attachment, Author, FeedDocument, FeedHead, FeedHub, Item
from warrenmq.hub.formats.read_feed import ReadFeed
from warrenmq.hub.formats.urls import DocumentUrls
from warrenmq.hub.formats.writing import write

URLS = DocumentUrls("https://hub.example/feeds/x")
PODCAST = b"""<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"
 xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"><channel>
<title>Cast</title><link>https://p.example/</link><description>All</description>
<itunes:author>Ann</itunes:author><itunes:image href="https://p.example/logo.jpg"/>
<itunes:category text="Arts"/><itunes:explicit>false</itunes:explicit>
<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>
<item><guid>https://p.example/1</guid><title>One</title><itunes:summary>About it</itunes:summary>
<itunes:author>Bob</itunes:author><itunes:duration>1:02:03</itunes:duration>
<itunes:image href="/1.jpg"/><itunes:keywords>a, b</itunes:keywords>
<itunes:episode>7</itunes:episode>
<enclosure url="https://p.example/1.mp3" length="12" type="audio/mpeg"/></item></channel></rss>"""
VIDEO = b"""<feed xmlns="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/">
<title>Videos</title><id>yt:channel</id><entry><id>yt:1</id><title>One</title>
<link rel="alternate" href="https://v.example/1"/><author><name>Ann</name>
<uri>https://v.example/ann</uri></author><updated>2026-11-23T10:00:00+01:00</updated>
<media:group><media:title>One again</media:title>
<media:content url="https://v.example/1.mp4" type="video/mp4" duration="90" fileSize="5"/>
<media:thumbnail url="https://v.example/1.jpg"/><media:description>Long text</media:description>
</media:group></entry></feed>"""


def read(body: bytes, media_type: str = "application/xml") -> ReadFeed:
    found = read_document("https://p.example/feed", media_type, body)
    assert isinstance(found, ReadFeed) and len(found.items) == 1
    return found


def test_a_podcast() -> None:
    feed = read(PODCAST)
    assert (feed.head.authors, feed.head.tags) == ([Author("Ann")], ["Arts"])
    assert feed.head.icon == "https://p.example/logo.jpg"
    assert feed.hints.update_interval_s == 6 * 3_600
    [one] = feed.items
    assert one.item.attachments == [
        Attachment("https://p.example/1.mp3", "audio/mpeg", "", 12, 3_723)
    ]
    assert (one.item.image, one.item.tags) == ("https://p.example/1.jpg", ["a", "b"])
    assert (one.item.content_text, one.item.authors) == ("About it", [Author("Bob")])
    rss = write("rss", FeedDocument(feed.head, [one.item]), urls=URLS)
    CHECKS["rss"](rss)
    for kept in (
        b"<itunes:duration>3723</itunes:duration>",
        b'<itunes:image href="https://p.example/1.jpg"/>',
        b"itunes:episode",
        b"itunes:explicit",
    ):
        assert kept in rss
    again = read(rss).items[0].item
    assert (again.attachments, again.image) == (one.item.attachments, one.item.image)


def test_a_video() -> None:
    [one] = read(VIDEO).items
    assert (one.item.title, one.item.content_text) == ("One", "Long text")
    assert one.item.image == "https://v.example/1.jpg"
    assert one.item.date_modified == "2026-11-23T09:00:00Z"
    assert one.item.authors == [Author("Ann", "https://v.example/ann")]
    assert one.item.attachments == [Attachment("https://v.example/1.mp4", "video/mp4", "", 5, 90)]


def test_a_json_feed() -> None:
    body = b"""\xef\xbb\xbf{"version": "https://jsonfeed.org/version/1", "title": 7,
    "home_page_url": "/", "author": {"name": "Ann"}, "hubs": [{"type": "WebSub", "url": "/hub"}],
    "items": [{"id": 12, "url": "1", "content_html": "<img src='a.png'>", "tags": ["x", 1],
    "date_published": "2026-11-23T10:00:00.5+01:00", "date_modified": "soon", "_own": {"a": 1},
    "attachments": [{"url": "a.mp3", "size_in_bytes": "big"}, 1]}, "no item"]}"""
    feed = read(body, "text/plain")
    assert (feed.format, feed.version, feed.head) == (
        "json",
        "JSON Feed 1",
        FeedHead(
            home_page_url="https://p.example/",
            authors=[Author("Ann")],
            hubs=[FeedHub("WebSub", "https://p.example/hub")],
        ),
    )
    assert feed.hub_urls == ("https://p.example/hub",)
    assert feed.items[0].item == Item(
        id="12",
        url="https://p.example/1",
        content_html='<img src="https://p.example/a.png">',
        date_published="2026-11-23T09:00:00Z",
        tags=["x"],
        attachments=[Attachment("https://p.example/a.mp3")],
        extensions={"_own": {"a": 1}},
    )
    assert any("'title'" in one for one in feed.notices)
    assert any("'date_modified'" in one for one in feed.notices)
