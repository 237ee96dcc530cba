"""Compares a topic's content with what is known: as a whole, and a feed entry by entry."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...core.errors import WarrenError
from ..links.discovery import looks_like_feed, media_type_of
from .entries import MAX_ENTRIES, FeedEntry, Known, changed, merged
from .json_items import read_json_feed
from .xml_feed import read_xml_feed

_MAX_TYPE_BYTES = 255  # AMQP's for a short string
_XML_FEEDS = ("application/atom+xml", "application/rss+xml", "application/rdf+xml")
_MAYBE_FEEDS = (
    "", "text/xml", "application/xml", "text/html", "text/plain", "application/octet-stream",
)  # fmt: skip


class ContentRefused(WarrenError):
    """The content is not distributed, for the reason in the text."""


class Feed(Protocol):
    """A feed of any format."""

    @property
    def entries(self) -> list[FeedEntry]: ...
    @property
    def has_more(self) -> bool:
        """Whether there are entries beyond `MAX_ENTRIES`, which are left out."""

    def only(self, selected: Sequence[bool]) -> bytes:
        """Returns the document with the selected entries alone."""


@dataclass(slots=True)
class TopicDocument:
    """One version of a topic's content, compared with what was known before."""

    content_type: str
    body: bytes
    digest: str
    known: Mapping[str, str]
    """The known digests with those of its entries; empty if it is no feed."""
    news: bytes | None
    """The feed with its new and changed entries alone, None without any; the whole content if it is
    no feed."""
    notice: str = ""
    """A fault for its publisher to mend; empty without one."""


def read_document(content_type: str, body: bytes, known: Known) -> TopicDocument:
    """Returns the content compared with what is known. Raises `ContentRefused`.

    It may take seconds and some hundred megabytes, so it runs in a worker process.
    """
    if not body:
        raise ContentRefused("it is empty")
    if len(content_type.encode()) > _MAX_TYPE_BYTES:
        raise ContentRefused(f"its Content-Type is longer than {_MAX_TYPE_BYTES} bytes")
    feed, notice = _read_feed(media_type_of(content_type), body)
    if feed is not None and feed.has_more:
        notice = f"it has more than {MAX_ENTRIES} entries; only the first {MAX_ENTRIES} are read"
    digest = hashlib.sha256(content_type.encode() + b"\0" + body).hexdigest()
    if feed is None:
        return TopicDocument(content_type, body, digest, {}, body, notice)
    selected = changed(feed.entries, known)
    news = feed.only(selected) if any(selected) else None
    return TopicDocument(content_type, body, digest, merged(known, feed.entries), news, notice)


def _read_feed(media_type: str, body: bytes) -> tuple[Feed | None, str]:
    if media_type == "application/json" or media_type.endswith("+json"):
        return read_json_feed(body), ""
    if media_type in _XML_FEEDS or (media_type in _MAYBE_FEEDS and looks_like_feed(body)):
        return _read_xml_feed(body)
    return None, ""


def _read_xml_feed(body: bytes) -> tuple[Feed | None, str]:
    """Reads a broken feed up to the fault: its subscribers may be able to read it."""
    feed = read_xml_feed(body)
    broken = feed.broken
    if broken is not None and (broken.is_refused or not feed.placed):
        raise ContentRefused(f"the feed can't be read: {broken.reason}")
    return (feed if feed.is_feed else None), "" if broken is None else broken.reason
