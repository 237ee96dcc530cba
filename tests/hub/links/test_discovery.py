"""Discovery in the order and with the care of WebSub 4 (websub.rocks subscriber 100-104)."""

from __future__ import annotations

import pytest

from warrenmq.hub.links.discovery import Links, discover, looks_like_feed

URL = "https://news.example/blog/feed"
HUB, SELF = "https://hub.example/", "https://news.example/blog/self"
EXPECTED = Links((HUB,), SELF)

HTML = (
    f"<!doctype html><html><head><title>a <link rel='hub' href='http://bad.example/'></title>"
    f'<link rel="hub" href="{HUB}"><LINK REL=Self HREF="self"></head>'
    f'<body><link rel="hub" href="http://bad.example/"></body></html>'
).encode()
ATOM = f"""<?xml version="1.0"?>
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="{HUB}"/>
<entry><link rel="self" href="/bad"/><link rel="hub" href="http://bad.example/"/></entry>
<link rel="self" href="self"/></feed>""".encode()
RSS = f"""<rss xmlns:a="http://www.w3.org/2005/Atom" version="2.0"><channel>
<item><a:link rel="hub" href="http://bad.example/"/></item><link>http://bad.example/</link>
<a:link rel="hub" href="{HUB}"/><a:link rel="self" href="self"/></channel></rss>""".encode()
RDF = f"""<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns="http://purl.org/rss/1.0/" xmlns:a="http://www.w3.org/2005/Atom"><channel>
<a:link rel="hub self" href="{HUB}"/></channel></r:RDF>""".encode()
JSON_FEED = f"""{{"version": "https://jsonfeed.org/version/1.1", "feed_url": "self", "hubs":
 [{{"type": "rssCloud", "url": "http://bad.example/"}}, {{"type": "WebSub", "url": "{HUB}"}}],
 "items": [{{"hubs": 1}}]}}""".encode()


def links(content_type: str, body: bytes, *fields: str) -> Links:
    return discover(URL, fields, content_type, body)


@pytest.mark.parametrize(
    "fields",
    [
        (f"<{HUB}>; rel=hub", "<self>; rel=self"),
        (f'<{HUB}>;title="a, \\"b\\"; rel=self";rel="other HUB" , <self> ; REL = "self" ; x',),
        (
            f'<https://x.example/>; rel=self; anchor="/x", <{HUB}>;rel=hub;rel=self',
            "<self>;rel=self",
        ),
    ],
)
def test_links_are_found_in_link_fields(fields: tuple[str, ...]) -> None:
    assert links("text/plain", b"", *fields) == EXPECTED


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html; charset=utf-8", HTML),
        ("application/xhtml+xml", HTML),
        ("application/atom+xml", ATOM),
        ("text/html", ATOM),
        ("", b"\xef\xbb\xbf" + ATOM),
        ("application/rss+xml; charset=utf-8", RSS),
        ("text/plain", b"<!-- a --> <?b?>" + RSS),
        ("application/feed+json", JSON_FEED),
        ("application/json", b"\xef\xbb\xbf" + JSON_FEED),
        ("text/html; charset=UTF-16LE", HTML.decode().encode("utf-16-le")),
        ("text/html", HTML.decode().encode("utf-16")),
        ("text/html; charset=latin1", HTML.replace(b"<title>", b"<title>\xff")),
        ("text/html; charset=zlib", HTML),
        ("text/html", b"\xef\xbb\xbf" + HTML),
    ],
)
def test_links_are_found_in_documents(content_type: str, body: bytes) -> None:
    assert links(content_type, body) == EXPECTED


def test_rdf() -> None:
    assert links("application/rdf+xml", RDF) == Links((HUB,), HUB)


def test_the_document_adds_to_the_header() -> None:
    assert links("text/html", HTML, f"<{HUB}x>; rel=hub") == Links((HUB + "x",), SELF)
    assert links("text/html", HTML, "</mine>; rel=self") == EXPECTED


def test_documents_without_links() -> None:
    """What is not in the head of a page may be the text of others (`test_page.py`)."""
    page = f'<html><head><p><link rel="hub" href="{HUB}"><link rel=self href=/>'
    assert links("text/html", page.encode()) == Links()
    assert links("text/plain", HTML) == Links()
    assert (
        links("application/json", b'{"hubs": [{"type": "WebSub", "url": "http://a/"}]}') == Links()
    )
    assert links("application/json", b"[" * 100_000) == Links()


def test_bases_are_honoured() -> None:
    page = b"<base href='http://b.example/x/'><link rel=hub href=hub><link rel=self href='?a#b'>"
    assert links("text/html", page) == Links(("http://b.example/x/hub",), "http://b.example/x/?a")
    feed = b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/a/"><link xml:base="b/"
        rel="hub self" href="c"/></feed>"""
    assert links("text/xml", feed).self_url == "https://news.example/a/b/c"


def test_only_http_urls_with_https_first() -> None:
    field = (
        "<http://b/>; rel=hub, <ftp://c/>; rel=hub, <https://a/>; rel=hub, <http://b/>; rel=hub,"
        "<http://[/>; rel=hub, <javascript:x>; rel=self"
    )
    assert links("text/plain", b"", field) == Links(("https://a/", "http://b/"), None)


@pytest.mark.parametrize(("length", "is_given"), [(2_048, True), (2_049, False)])
def test_a_url_too_long_for_a_request(length: int, is_given: bool) -> None:
    url = "http://b/" + "x" * (length - 9)
    page = f"<link rel='hub self' href={url}>".encode()
    assert links("text/html", page) == (Links((url,), url) if is_given else Links())


def test_a_feed_that_breaks_off_has_the_links_before_that() -> None:
    assert links("text/xml", ATOM[: ATOM.index(b"</entry>")]).hubs == (HUB,)


def test_links_are_found_in_encodings_unknown_to_expat() -> None:
    body = ATOM.replace(b'"1.0"', b'"1.0" encoding="shift_jis"').replace(
        b"<entry>", b"<entry><title>" + "日本語".encode("shift_jis") + b"</title>"
    )
    assert links("text/xml", body) == EXPECTED


def test_an_invalid_base_is_ignored() -> None:
    feed = RSS.replace(b"<rss ", f'<rss xml:base="{URL}" '.encode())
    feed = feed.replace(b"<channel>", b'<channel xml:base="http://[">')
    assert links("text/xml", feed) == EXPECTED


def test_feeds_are_recognised_by_their_first_element() -> None:
    assert looks_like_feed(
        ATOM.decode().replace('"1.0"', '"1.0" encoding="utf-16"').encode("utf-16")
    )
    assert looks_like_feed(b"<!DOCTYPE rss SYSTEM 'a'><rss/>") and looks_like_feed(RDF)
    assert looks_like_feed(b"\xef\xbb\xbf\r\n<?xml version='1.0'?><!doctype rss><rss/>")
    assert not looks_like_feed(b"<!DOCTYPE html><rss/>") and not looks_like_feed(b"rss")
    assert not looks_like_feed(b"<?a?> " * 10_000 + b"<x>")
    assert not looks_like_feed(b"<html><rss>")
