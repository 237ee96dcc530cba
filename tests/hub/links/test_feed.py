from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warrenmq.hub.links.feed import read_feed

LINK = b'<a:link rel="hub" href="h" xmlns:a="http://www.w3.org/2005/Atom"/>'


def hubs(body: bytes) -> list[tuple[str, str]]:
    return read_feed(body).hubs


def test_only_the_feeds_own_level_counts() -> None:
    rss = b"<rss><channel>%b<item>%b</item></channel>%b</rss>"
    assert hubs(rss % (LINK, b"", b"")) == [("", "h")]
    assert hubs(rss % (b"", LINK, LINK)) == []
    assert hubs(b"<html><channel>" + LINK + b"</channel></html>") == []


def test_only_atoms_links_count() -> None:
    assert hubs(b'<rss><channel><link rel="hub" href="h"/></channel></rss>') == []


def test_bases_are_inherited() -> None:
    body = b'<rss xml:base="http://a/b/"><channel xml:base="c/">%b</channel></rss>' % LINK
    assert hubs(body) == [("http://a/b/c/", "h")]


def test_a_base_that_is_no_url_is_none() -> None:
    body = b'<rss xml:base="http://a/b/"><channel xml:base="http://[">%b</channel></rss>' % LINK
    assert hubs(body) == [("http://a/b/", "h")]


@given(st.binary(max_size=80))
def test_any_bytes_are_taken(body: bytes) -> None:
    read_feed(body)
    read_feed(b"<rss><channel>" + LINK + body)
