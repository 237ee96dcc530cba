"""Two thousand feeds of all kinds: each is read, written in all formats, and read back."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import feedparser
import pytest

from tests.hub.formats.rules import CHECKS
from tests.support.corpus import FeedDocument, feed_documents
from warrenmq.hub.formats.feed_reader import read_document
from warrenmq.hub.formats.html_text import to_text
from warrenmq.hub.formats.model import FeedDocument as Document
from warrenmq.hub.formats.read_feed import FeedRefused, ReadFeed
from warrenmq.hub.formats.urls import DocumentUrls, as_guid, as_iri, link
from warrenmq.hub.formats.writing import write

URLS = DocumentUrls("https://hub.example/feeds/x", ("https://hub.example/hub",))
# Documents that are not read, by the beginning of their path, and why.
NOT_READ = {
    "compression/deflate-no-headers.z": "compressed, which is the fetcher's work",
    "compression/deflate.z": "compressed",
    "compression/gzip.gz": "compressed",
    "compression/gzip-struct-error.gz": "compressed",
    "http/http_status_302-no-location.xml": "an empty answer",
    "illformed/rss_empty_document.xml": "nothing but a comment",
    "wellformed/cdf/channel_": "a channel of CDF without items, which nothing tells from other XML",
    "wellformed/rdf/doctype_contains_entity_decl.xml": "declarations",
    "wellformed/rss/entity_in_doctype.xml": "declarations",
}
# Documents of which feedparser makes something else, and why.
REPEATED = {
    "wellformed/lang/entry_content_xml_lang_blank_3.xml",
    "wellformed/node_precedence/atom10_arbitrary_element.xml",
    "wellformed/node_precedence/atom10_id.xml",
    "wellformed/node_precedence/atom10_title.xml",
}
"""Entries that repeat id, link and content of another are one item here."""
CUT = {"illformed/rss_incomplete_cdata.xml"}
"""Documents that end in an entry, which is left out here."""
OTHER_TITLE = {
    "wellformed/atom10/entry_title_base64.xml": "a type that titles can't have (RFC 4287 3.1.1)",
    "wellformed/atom10/entry_title_base64_2.xml": "a type that titles can't have",
    "wellformed/rss/item_category_image.xml": "the title of an image inside a category",
}


@pytest.fixture(scope="module")
def documents() -> list[FeedDocument]:
    return feed_documents()


def parsed(body: bytes, content_type: str = "application/xml") -> list[Any]:
    """feedparser's entries; without a Content-Location it leaves relative ids as they are."""
    found = feedparser.parse(
        io.BytesIO(body),
        response_headers={"content-type": content_type},
        sanitize_html=False,
        resolve_relative_uris=False,
    )
    entries: list[Any] = found.entries
    return entries


def read(document: FeedDocument) -> ReadFeed | None:
    try:
        found = read_document("https://example.com/x", document.content_type, document.body)
    except FeedRefused:
        return None
    return found if isinstance(found, ReadFeed) else None


def text(entry: Any, name: str) -> str:
    value = dict.get(entry, name, "")
    return value if isinstance(value, str) else ""


def title(entry: Any) -> str:
    value, detail = text(entry, "title"), dict.get(entry, "title_detail") or {}
    return to_text(value) if "html" in detail.get("type", "") else " ".join(value.split())


def sources(documents: list[FeedDocument]) -> Iterator[tuple[FeedDocument, ReadFeed]]:
    """The documents that are feeds; there are as many as there should be."""
    count = 0
    for document in documents:
        found = read(document)
        assert (found is None) == document.path.startswith(tuple(NOT_READ)), document.path
        if found is not None:
            count += 1
            yield document, found
    assert count > 2_000


def test_ids_titles_and_links_are_those_of_feedparser(documents: list[FeedDocument]) -> None:
    for document, feed in sources(documents):
        entries = parsed(document.body, document.content_type)
        if document.path in REPEATED | CUT:
            assert len(feed.items) < len(entries)
            continue
        for entry, item in zip(entries, [one.item for one in feed.items], strict=True):
            assert text(entry, "id") in ("", item.id), document.path
            assert "://" not in text(entry, "link") or text(entry, "link") == item.url
            is_same = title(entry) == " ".join(item.title.split())
            assert is_same != (document.path in OTHER_TITLE), document.path


def test_every_feed_is_valid_in_all_formats_and_reads_back(documents: list[FeedDocument]) -> None:
    for document, feed in sources(documents):
        items = [one.item for one in feed.items]
        written = Document(feed.head, items)
        atom, rss, json_feed = (write(one, written, urls=URLS) for one in ("atom", "rss", "json"))
        for format, body in (("atom", atom), ("rss", rss), ("json", json_feed)):
            CHECKS[format](body)
        titles = [" ".join(item.title.split()) for item in items]
        links = [link(item.url) for item in items]
        for body, ids in (
            (atom, [as_iri(item.id) for item in items]),
            (rss, [as_guid(item.id) for item in items]),
        ):
            entries = parsed(body)
            assert [text(entry, "id") for entry in entries] == ids, document.path
            assert [title(entry) for entry in entries] == titles, document.path
            for entry, item in zip(entries, items, strict=True):
                # feedparser takes an Atom id for the link of an entry without one.
                other = link(item.external_url) if body is rss else entry.id
                assert text(entry, "link") == (link(item.url) or other), document.path
        again = json.loads(json_feed)["items"]
        assert [one["id"] for one in again] == [item.id for item in items]
        assert [" ".join(one.get("title", "").split()) for one in again] == titles
        assert [one.get("url", "") for one in again] == links
