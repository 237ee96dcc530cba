"""Entries of Atom, RSS and RDF, and documents without some of them."""

from __future__ import annotations

import pytest

from tests.hub.topics.feeds import atom, rss
from warrenmq.hub.topics.entries import MAX_ENTRIES
from warrenmq.hub.topics.xml_feed import read_xml_feed

RDF = b"""<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel r:about="http://a/"><title>t</title></channel>
<item r:about="http://a/1"><title>one</title></item><item><link>http://a/2</link></item></r:RDF>"""


def names(body: bytes) -> list[str]:
    return [entry.name for entry in read_xml_feed(body).entries]


def digest(*items: str) -> str:
    return read_xml_feed(rss(*items)).entries[0].digest


def test_names() -> None:
    assert names(atom(("urn:1", "a"), ("urn:2", "b"))) == ["urn:1", "urn:2"]
    assert names(RDF) == ["http://a/1", "http://a/2"]
    items = rss(
        "<link>http://a/l</link><guid> g\n1 </guid>",
        "<link>http://a/2</link><title>b</title>",
        "<title>only</title>",
        "<source><guid>not mine</guid></source><guid>mine</guid>",
    )
    found = names(items)
    assert found[:2] == ["g 1", "http://a/2"] and found[3] == "mine"
    assert found[2] == digest("<title>only</title>")


def test_links_of_atom() -> None:
    body = atom(("", "</title><link rel='edit' href='e'/><link href='http://a/1'/><title>x"))
    assert names(body) == ["http://a/1"]


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("<title>a</title><pubDate>1</pubDate>", "<title>a</title><pubDate>2</pubDate>", True),
        ("<title>a  b</title>", "<title>\na b </title>", True),
        ("<title>a</title><guid>1</guid>", "<title>a</title><guid>2</guid>", True),
        ("<title>a</title><c:comments xmlns:c='c'>1</c:comments>", "<title>a</title>", True),
        ("<title>a</title><link rel='edit' href='1'/>", "<title>a</title>", True),
        ("<title>a</title>", "<title>b</title>", False),
        ("<description>a</description>", "<description>b</description>", False),
        ("<e:encoded xmlns:e='e'>a</e:encoded>", "<e:encoded xmlns:e='e'>b</e:encoded>", False),
        ("<link>a</link>", "<link>b</link>", False),
        ("<link href='a'/>", "<link href='b'/>", False),
        ("<enclosure url='a'/>", "<enclosure url='b'/>", False),
        ("<content><p>a<img src='1'/></p></content>", "<content><p>a<img src='2'/></p></content>",
         False),
        ("<content><p>a</p></content>", "<content><p>b</p></content>", False),
        ("<m:group xmlns:m='m'><m:title>a</m:title></m:group>",
         "<m:group xmlns:m='m'><m:title>b</m:title></m:group>", False),
        ("<other>a</other>", "<other>b</other>", False),
    ],
)  # fmt: skip
def test_the_content_of_an_entry(first: str, second: str, is_same: bool) -> None:
    assert (digest(first) == digest(second)) is is_same


def test_entries_are_cut_out_to_the_byte() -> None:
    body = rss("<guid>1</guid>", "<guid>2</guid><t>\xe9</t>", "<guid>3</guid>")
    feed = read_xml_feed(body)
    assert feed.only([True, True, True]) == body
    assert feed.only([False, True, False]) == rss("<guid>2</guid><t>\xe9</t>")
    assert feed.only([False, False, False]) == rss()


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "iso-8859-1", "shift_jis"]
)
def test_encodings_are_kept(encoding: str) -> None:
    title = "日本語 <b/>" if encoding != "iso-8859-1" else "é"
    head = f'<?xml version="1.0" encoding="{encoding[:6] if "utf" in encoding else encoding}"?>'
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    one, two = (f"<item ><guid>{n}</guid><title>{title}</title></item >" for n in (1, 2))
    start, end = f"{mark}{head}<rss><channel>", f"<x>{title}</x></channel></rss>"
    feed = read_xml_feed(f"{start}{one} {two}{end}".encode(encoding))
    assert feed.broken is None and len(feed.entries) == 2
    assert feed.only([False, True]).decode(encoding) == f"{start} {two}{end}"
    assert feed.only([True, False]).decode(encoding) == f"{start}{one} {end}"


def test_entries_are_found_in_their_place_only() -> None:
    body = rss("<guid>1</guid><item><guid>2</guid></item>")
    assert names(body) == ["1"]
    assert names(b"<rss><item><guid>1</guid></item></rss>") == []
    assert names(b"<html><channel><item><guid>1</guid></item></channel></html>") == []
    assert not read_xml_feed(b"<html/>").is_feed


def test_empty_entries_are_ignored() -> None:
    empty = b"<channel><item/><item></item><item>x</item>"
    body = rss("<guid>1</guid>").replace(b"<channel>", empty)
    feed = read_xml_feed(body)
    assert len(feed.entries) == 1
    assert feed.only([False]) == body.replace(b"<item><guid>1</guid></item>", b"")


def test_entries_beyond_the_limit_are_left_out() -> None:
    items = [f"<guid>{number}</guid>" for number in range(MAX_ENTRIES + 500)]
    feed = read_xml_feed(rss(*items).replace(b"<item><guid>1200", b"<!--c--><item><guid>1200"))
    assert feed.has_more and len(feed.entries) == MAX_ENTRIES
    kept = feed.only([True] * MAX_ENTRIES)
    assert kept == rss(*items[:MAX_ENTRIES]).replace(b"</channel>", b"<!--c--></channel>")


def test_a_broken_feed_has_the_entries_before_the_fault() -> None:
    body = rss("<guid>1</guid>", "<guid>2</guid>", "<guid>3</wrong>")
    feed = read_xml_feed(body)
    assert names(body) == ["1", "2"] and feed.broken is not None
    assert feed.only([False, True]) == body.replace(b"<item><guid>1</guid></item>", b"")
