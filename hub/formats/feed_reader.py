"""Reads a document of any format: chooses the reader, and explains why none can read it.

Readers that few documents need are imported when they are needed: with what they import themselves
(feedparser, jsonpath), they take a worker process as long as all the rest of its start.
"""

from __future__ import annotations

import re

from ..links.discovery import looks_like_feed, media_type_of
from ..links.feeds import find_feeds
from .json_feed import read_json_feed
from .read_feed import Candidate, FeedRefused, ReadFailure, ReadFeed
from .xml_feed import read_xml_feed

_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_HTML = ("text/html", "application/xhtml+xml")


def read_document(
    url: str, content_type: str, body: bytes, selector: str = ""
) -> ReadFeed | ReadFailure:
    """Returns the feed at `url`. Raises `FeedRefused`. It is too slow for the event loop."""
    if not body.strip():
        raise FeedRefused("it is empty")
    if selector:
        from .selected import read_selected

        return read_selected(url, content_type, body, selector)
    if _looks_like_json(content_type, body):
        return read_json_feed(url, body)
    if media_type_of(content_type) in _HTML and not looks_like_feed(body):
        return _page(url, content_type, body)
    found = read_xml_feed(url, body, _charset(content_type))
    if found is not None:
        return found
    from .lenient import read_leniently

    return read_leniently(url, content_type, body) or _page(url, content_type, body)


def _charset(content_type: str) -> str | None:
    """Returns the charset that overrides the document's (RFC 7303 3.2)."""
    stated = _CHARSET.search(content_type)
    return None if stated is None else stated[1]


def _looks_like_json(content_type: str, body: bytes) -> bool:
    media_type = media_type_of(content_type)
    is_json = media_type == "application/json" or media_type.endswith("+json")
    return body[:1_024].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in ((b"{", b"[") if is_json else (b"{",))


def _page(url: str, content_type: str, body: bytes) -> ReadFailure:
    feeds = find_feeds(url, content_type, body)
    candidates = tuple(Candidate(one.url, one.title, one.media_type) for one in feeds)
    if not candidates:
        return ReadFailure("it is no feed, and names none")
    named = ", ".join(one.url for one in candidates[:3])
    return ReadFailure(f"it is no feed, but names {len(candidates)}: {named}"[:1_000], candidates)
