"""What is written is valid, and reads back as it was: with feedparser, and with our own reader."""

from __future__ import annotations

import io
import re
import string
from datetime import datetime
from typing import Any

import feedparser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hub.formats.rules import ATOM, CHECKS
from warrenmq.hub.formats.feed_reader import read_document
from warrenmq.hub.formats.media_types import MEDIA_TYPES, Format
from warrenmq.hub.formats.model import (
    Attachment,
    Author,
    FeedDocument,
    FeedHead,
    Item,
    decode_item,
    encode_item,
)
from warrenmq.hub.formats.read_feed import ReadFeed
from warrenmq.hub.formats.urls import DocumentUrls
from warrenmq.hub.formats.writing import write

URLS = DocumentUrls(
    "https://hub.example/feeds/news", ("https://hub.example/hub",), "https://hub.example/older"
)
FORMATS: tuple[Format, ...] = ("atom", "rss", "json")
ITEM = Item(
    id="urn:item:1",
    url="https://example.com/1",
    title="A <b> & c",
    content_html="<p>Long &amp; <a href='https://example.com/2'>linked</a> ]]></p>",
    summary="Short & <sweet>",
    image="https://example.com/1.png",
    date_published="2026-11-23T09:00:00Z",
    date_modified="2026-11-23T10:00:00Z",
    authors=[Author("Ann Bell", "mailto:ann@example.com")],
    tags=["news", "a & b"],
    attachments=[Attachment("https://example.com/1.mp3", "audio/mpeg", "", 9, 90)],
)
DOCUMENT = FeedDocument(
    FeedHead(
        title="News", home_page_url="https://example.com/", description="All of it",
        icon="https://example.com/logo.png", language="en-GB", copyright="CC0",
        authors=[Author("The editors")], tags=["world"],
    ),
    [ITEM],
)  # fmt: skip


def reread(format: Format, body: bytes) -> ReadFeed:
    found = read_document(URLS.self_url, MEDIA_TYPES[format], body)
    assert isinstance(found, ReadFeed) and found.notices == ()
    return found


def parsed(body: bytes) -> Any:
    found = feedparser.parse(io.BytesIO(body), sanitize_html=False, resolve_relative_uris=False)
    assert not found.bozo
    return found


@pytest.mark.parametrize("format", FORMATS)
def test_a_feed_is_valid_and_reads_back_as_it_was(format: Format) -> None:
    body = write(format, DOCUMENT, urls=URLS)
    CHECKS[format](body)
    feed = reread(format, body)
    assert [one.item for one in feed.items] == [ITEM]
    assert (feed.self_url, feed.hub_urls) == (URLS.self_url, URLS.hub_urls)
    expected = DOCUMENT.head
    for name in ("title", "home_page_url", "description", "icon", "language", "copyright", "tags"):
        assert getattr(feed.head, name) == getattr(expected, name), name


@pytest.mark.parametrize("format", ["atom", "rss"])
def test_feedparser_reads_the_same(format: Format) -> None:
    feed = parsed(write(format, DOCUMENT, urls=URLS))
    [entry] = feed.entries
    assert (entry.id, entry.link, entry.author_detail.name) == (ITEM.id, ITEM.url, "Ann Bell")
    assert (entry.content[0].value, entry.updated) == (ITEM.content_html, ITEM.date_modified)
    assert entry.published_parsed[:5] == (2026, 11, 23, 9, 0)
    assert [tag.term for tag in entry.tags] == ITEM.tags
    [enclosure] = entry.enclosures
    assert (enclosure.href, enclosure.type, enclosure.length) == (
        "https://example.com/1.mp3", "audio/mpeg", "9",
    )  # fmt: skip
    assert {(one.rel, one.href) for one in feed.feed.links} >= {
        ("self", URLS.self_url), ("hub", URLS.hub_urls[0]), ("next", URLS.next_url),
    }  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
def test_missing_required_members_are_filled_in(format: Format) -> None:
    document = FeedDocument(FeedHead(), [Item(id="12 & more"), Item(id="\x00", language="no text")])
    body = write(format, document, urls=DocumentUrls("https://hub.example/a"))
    CHECKS[format](body)
    assert write(format, document, urls=DocumentUrls("https://hub.example/a")) == body


@pytest.mark.parametrize("format", FORMATS)
def test_links_that_could_run_a_script_are_left_out(format: Format) -> None:
    script = "javascript:alert(1)"
    bad = Item("urn:1", script, "JavaScript:a", "bad", image=script, authors=[Author("A", script)])
    data = ["data:text/plain,kept", "data:application/octet-stream;base64,a2VwdA=="]
    pages = ["data:text/html,x", "data:image/svg+xml,x", "data:Application/XHTML+xml;a=b,x"]
    bad.attachments = [Attachment(one) for one in (script, *data, *pages)]
    document = FeedDocument(FeedHead(title="x", home_page_url=script, icon=script), [bad])
    body = write(format, document, urls=URLS)
    assert b"javascript" not in body.lower()
    assert re.findall(r"data:[^\"]*", body.decode()) == data


def test_ids_that_are_no_iris_become_urns_in_atom() -> None:
    body = write("atom", FeedDocument(FeedHead(), [Item(id="post 12")]), urls=URLS)
    assert "<id>urn:warren:post%2012</id>" in body.decode()


def test_extensions_of_items_are_written_where_their_format_has_them() -> None:
    extensions = {
        "_xml": {"elements": ['<g:price xmlns:g="urn:g" unit="EUR">1<g:x/></g:price>', "<no", 7]},
        "_rss": {"elements": ["<comments>https://example.com/c</comments>"]},
        "_atom": {
            "elements": [
                '<link xmlns="http://www.w3.org/2005/Atom" rel="via" href="https://a.example/b"/>'
            ]
        },
        "_other": {"a": 1},
    }
    document = FeedDocument(FeedHead(), [Item(id="a:1", extensions=extensions)])
    atom, rss, json = (write(format, document, urls=URLS).decode() for format in FORMATS)
    for body in (atom, rss):
        assert '<g:price xmlns:g="urn:g" unit="EUR">1<g:x/></g:price>' in body
        CHECKS["atom" if body is atom else "rss"](body.encode())
    assert 'rel="via"' in atom and "comments" not in atom
    assert "<comments>https://example.com/c</comments>" in rss and "via" not in rss
    assert '"_other":{"a":1}' in json
    assert decode_item(encode_item(document.items[0])) == document.items[0]


def test_what_formats_do_not_allow_is_left_out_of_extensions() -> None:
    in_atom = [
        "<id>urn:x</id>",
        "<link href='a:alternate'/>",
        "<link rel='via' href='no iri'/>",
        "<link rel='via' href='file:///iri'/>",
        "<contributor><uri>a:b</uri></contributor>",
        "<contributor><name>Ann</name><email>none</email></contributor>",
        "<source><id>x</id><title>Kept</title><updated>now</updated><link href='http://a.example/'/></source>",
        "<source/>",
        "<rights type='text/css'>x</rights>",
    ]
    default = f" xmlns='{ATOM[1:-1]}'"
    extensions = {
        "_atom": {"elements": [re.sub(r"(?<=^<)\w+", rf"\g<0>{default}", one) for one in in_atom]},
        "_rss": {
            "elements": [
                "<guid>x</guid>",
                "<comments>file:///a</comments>",
                *("<comments>http://a.example/</comments>",) * 2,
                "<source url='urn:b'>b</source>",
            ]
        },
        "_1": {},
        "_a.b": {},
        "_a": {"b.c": 1, "_d": 2, "e": 3},
    }
    document = FeedDocument(FeedHead(extensions=extensions), [Item("a:1", extensions=extensions)])
    atom, rss, json = (write(format, document, urls=URLS).decode() for format in FORMATS)
    for format, body in zip(FORMATS, (atom, rss, json), strict=True):
        CHECKS[format](body.encode())
    assert "Ann" in atom and "Kept" in atom and "none" not in atom and "iri" not in atom
    assert rss.count("</comments>") == 1 and "<source" not in rss
    assert '"_a":{"e":3}' in json and "_1" not in json


def test_elements_are_kept_up_to_a_limit() -> None:
    long = f'<g:a xmlns:g="urn:g">{"x" * 40_000}</g:a>'
    body = f'<rss version="2.0"><channel><item><title>a</title>{long * 2}</item></channel></rss>'
    [one] = reread("rss", body.encode()).items
    assert one.item.extensions == {"_xml": {"elements": [long]}}


def test_elements_of_no_namespace_leave_that_of_atom() -> None:
    extensions = {"_xml": {"elements": ['<g:a xmlns:g="urn:g"><plain/></g:a>']}}
    document = FeedDocument(FeedHead(), [Item(id="a:1", extensions=extensions)])
    assert b'<g:a xmlns:g="urn:g" xmlns=""><plain/></g:a>' in write("atom", document, urls=URLS)
    assert ATOM.encode() not in write("rss", document, urls=URLS)


TEXTS = st.text(max_size=30)
WORDS = st.text(string.ascii_letters + "é&", min_size=1, max_size=5)
NAMES = st.lists(WORDS, max_size=2).map(" ".join)
URL = NAMES.map(lambda name: f"https://example.com/{name.replace(' ', '_')}")
DATES = st.datetimes(datetime(1970, 1, 1)).map(
    lambda date: f"{date.replace(microsecond=0).isoformat()}Z"
)
ITEMS = st.builds(
    Item, id=TEXTS.filter(bool), url=TEXTS, title=TEXTS, content_html=TEXTS, content_text=TEXTS,
    summary=TEXTS, image=TEXTS, date_published=TEXTS | DATES, date_modified=TEXTS | DATES,
    authors=st.lists(st.builds(Author, name=TEXTS, url=TEXTS), max_size=2),
    tags=st.lists(TEXTS, max_size=2), language=TEXTS, external_url=TEXTS,
    attachments=st.lists(st.builds(Attachment, url=TEXTS, mime_type=TEXTS), max_size=2),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(ITEMS, TEXTS)
def test_no_text_breaks_a_document(item: Item, text: str) -> None:
    head = FeedHead(title=text, description=text, icon=text, language=text, tags=[text])
    for format in FORMATS:
        CHECKS[format](write(format, FeedDocument(head, [item]), urls=URLS))


SOUND = st.builds(
    Item, id=NAMES.filter(bool).map(lambda name: f"urn:x:{name.replace(' ', '_')}"), url=URL,
    title=NAMES, content_html=NAMES.map(lambda name: f"<p>{name.replace('&', '&amp;')}</p>"),
    summary=NAMES, date_published=DATES, date_modified=DATES,
    tags=st.lists(NAMES.filter(bool), max_size=3, unique=True),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(SOUND, min_size=1, max_size=3, unique_by=lambda item: item.id))
def test_sound_items_read_back_from_each_format(items: list[Item]) -> None:
    for format in FORMATS:
        body = write(format, FeedDocument(FeedHead(title="x"), items), urls=URLS)
        assert [one.item for one in reread(format, body).items] == items, format
