"""A topic's content as it is compared: whole, and entry by entry where it is a feed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...core.errors import WarrenError
from ..links.discovery import looks_like_feed, media_type_of
from .entries import MAX_ENTRIES, Entry, Known, changed, merged
from .json_items import read_json_feed
from .xml_feed import read_xml_feed

_MAX_TYPE_BYTES = 255  # AMQP's for a short string
_XML_FEEDS = ("application/atom+xml", "application/rss+xml", "application/rdf+xml")
_MAYBE_FEEDS = (
    "", "text/xml", "application/xml", "text/html", "text/plain", "application/octet-stream",
)  # fmt: skip


class ContentRefused(WarrenError):
    """Not distributed; the text says why."""


class Feed(Protocol):
    @property
    def entries(self) -> list[Entry]: ...
    @property
    def has_more(self) -> bool:
        """Whether there are entries beyond the limit, which are left out."""

    def only(self, selected: Sequence[bool]) -> bytes:
        """The document with only these of its entries."""


@dataclass(slots=True)
class Document:
    """One state of a topic, beside what was known of it before."""

    content_type: str
    body: bytes
    digest: str
    known: Mapping[str, str]
    """The digests of its entries on top of those that were known; empty for what is no feed."""
    news: bytes | None
    """The feed with only those entries that are new or changed, None without any; the whole where
    it is no feed."""
    notice: str = ""
    """What its publisher might want to mend."""


def read_document(content_type: str, body: bytes, known: Known) -> Document:
    """Raises `ContentRefused`. It takes up to some seconds and some hundred megabytes: for a
    worker process."""
    if not body:
        raise ContentRefused("it is empty")
    if len(content_type.encode()) > _MAX_TYPE_BYTES:
        raise ContentRefused(f"its Content-Type is longer than {_MAX_TYPE_BYTES} bytes")
    feed, notice = _read_feed(media_type_of(content_type), body)
    if feed is not None and feed.has_more:
        notice = f"it has more than {MAX_ENTRIES} entries; only the first {MAX_ENTRIES} are read"
    digest = hashlib.sha256(content_type.encode() + b"\0" + body).hexdigest()
    if feed is None:
        return Document(content_type, body, digest, {}, body, notice)
    selected = changed(feed.entries, known)
    news = feed.only(selected) if any(selected) else None
    return Document(content_type, body, digest, merged(known, feed.entries), news, notice)


def _read_feed(media_type: str, body: bytes) -> tuple[Feed | None, str]:
    if media_type == "application/json" or media_type.endswith("+json"):
        return read_json_feed(body), ""
    if media_type in _XML_FEEDS or (media_type in _MAYBE_FEEDS and looks_like_feed(body)):
        return _read_xml_feed(body)
    return None, ""


def _read_xml_feed(body: bytes) -> tuple[Feed | None, str]:
    """A feed that breaks off is read as far as it goes, for its subscribers may read it too."""
    feed = read_xml_feed(body)
    broken = feed.broken
    if broken is not None and (broken.is_refused or not feed.placed):
        raise ContentRefused(f"the feed can't be read: {broken.reason}")
    return (feed if feed.is_feed else None), "" if broken is None else broken.reason
