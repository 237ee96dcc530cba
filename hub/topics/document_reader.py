"""Compares a topic's content with what is known: as a whole, and a feed entry by entry.

This runs in worker processes; the server itself would take long to import what reads broken feeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..links.discovery import looks_like_feed, media_type_of
from ..links.json_feed import VERSION
from .document import TopicDocument, whole_document
from .entries import MAX_ENTRIES, FeedEntry, Known, changed, merged
from .json_items import read_json_feed
from .xml_feed import read_xml_feed

_JSON_FEED = "application/feed+json"
_XML_FEEDS = ("application/atom+xml", "application/rss+xml", "application/rdf+xml")
_BLANKS = b"\xef\xbb\xbf \t\r\n"
_SNIFFED_BYTES = 2_048


class Feed(Protocol):
    """A feed of any format."""

    @property
    def entries(self) -> list[FeedEntry]: ...
    @property
    def has_more(self) -> bool:
        """Whether there are entries beyond `MAX_ENTRIES`, which are left out."""

    def only(self, selected: Sequence[bool]) -> bytes:
        """Returns the document with the selected entries alone."""


def read_document(content_type: str, body: bytes, known: Known) -> TopicDocument:
    """Returns the content compared with what is known.

    It may take seconds and some hundred megabytes, so it runs in a worker process.
    """
    feed, fault = _read_feed(content_type, body)
    document = whole_document(content_type, body, known, "" if feed else fault)
    if feed is None:
        return document
    if feed.has_more:
        fault = f"it has more than {MAX_ENTRIES} entries; only the first {MAX_ENTRIES} are read"
    selected = changed(feed.entries, known)
    document.news = feed.only(selected) if any(selected) else None
    document.known, document.notice = merged(known, feed.entries), fault
    return document


def _read_feed(content_type: str, body: bytes) -> tuple[Feed | None, str]:
    """Returns the feed and its fault, else why what claims to be a feed is read as none.

    What it looks like counts more than its type, which many servers get wrong.
    """
    media_type = media_type_of(content_type)
    start = body[:_SNIFFED_BYTES].lstrip(_BLANKS)
    if (media_type in _XML_FEEDS and not start.startswith(b"{")) or looks_like_feed(body):
        return _read_xml_feed(body)
    feed = read_json_feed(body) if start.startswith(b"{") else None
    if feed is not None:
        return feed, ""
    is_named = media_type in (*_XML_FEEDS, _JSON_FEED) or VERSION.encode() in start
    return None, "it is no feed of any format" if is_named else ""


def _read_xml_feed(body: bytes) -> tuple[Feed | None, str]:
    feed = read_xml_feed(body)
    if feed.broken is None:
        return (feed, "") if feed.is_feed else (None, "it is no feed")
    # Not above: it imports feedparser, which takes 0.1 s, and most feeds are well-formed.
    from .broken_feed import read_broken_feed

    found = read_broken_feed(body)
    return (found if found.placed else None), feed.broken.reason
