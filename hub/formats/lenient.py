"""Reads documents that are not well-formed, or of an old kind, with feedparser.

Its sanitising is switched off: that is for consumers, who know where they show what.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable

import feedparser

from ..links.safe_xml import DECLARATIONS
from .early_end import EARLY_END, FEED_ROOT, ITEM_END, whole_part
from .feedparser_values import (
    HTML,
    Values,
    cloud_in,
    date_in,
    dictionaries,
    inside,
    links_in,
    plain_in,
    tags_in,
    text_in,
)
from .hints import read_hints
from .html_text import absolute, to_text, with_absolute_links
from .identity import identified
from .model import Attachment, Author, FeedHead, FeedHub, Item
from .numbers import duration_s, size_bytes
from .read_feed import (
    MAX_ITEMS,
    MAX_LISTED,
    MORE_ITEMS,
    FeedRefused,
    PollHints,
    ReadFeed,
    SourceFormat,
)

_DECLARATIONS = re.compile(rb"<!(?:DOCTYPE[^>\[]*\[|ENTITY\b)", re.IGNORECASE)
_SKIPPED = re.compile(rb"<(hour|day)>\s*([A-Za-z0-9]{1,9})\s*</\1>", re.IGNORECASE)
_FAMILIES: tuple[tuple[str, SourceFormat], ...] = (
    ("atom", "atom"), ("rss10", "rdf"), ("rss090", "rdf"), ("cdf", "cdf"), ("", "rss"),
)  # fmt: skip


def read_leniently(url: str, content_type: str, body: bytes) -> ReadFeed | None:
    """Returns the feed, None for what is no feed. Raises `FeedRefused` for declarations."""
    root = FEED_ROOT.search(body)
    if _DECLARATIONS.search(body[: root.start() if root else len(body)].replace(b"\0", b"")):
        raise FeedRefused(DECLARATIONS)
    whole = whole_part(body)
    cut, notices = _cut(whole)
    # Without a Content-Location ids stay as they are; links are made absolute here.
    headers = {"content-type": content_type or "application/xml"}
    try:
        parsed: Values = feedparser.parse(
            io.BytesIO(cut),
            response_headers=headers,
            resolve_relative_uris=False,
            sanitize_html=False,
        )
    except MemoryError:
        raise
    except Exception as error:  # feedparser raises errors of many kinds for broken markup
        raise FeedRefused(f"it can't be read as a feed: {error}") from error
    version = text_in(parsed, "version")
    if not (version or parsed["entries"]):
        return None
    is_whole = whole is body
    notices += _faults(parsed) if is_whole else [EARLY_END]
    found = _FeedparserReader(url, parsed["feed"]).read(
        version, parsed["entries"][:MAX_ITEMS], body, notices
    )
    found.is_whole = is_whole
    return found


def _cut(body: bytes) -> tuple[bytes, list[str]]:
    """Returns the body up to the last item that is read, so that the rest takes no time."""
    end = 0
    for number, one in enumerate(ITEM_END.finditer(body)):
        if number == MAX_ITEMS:
            return body[:end], [MORE_ITEMS]
        end = one.end()
    return body, []


def _faults(parsed: Values) -> list[str]:
    fault = parsed.get("bozo_exception")
    if not parsed.get("bozo") or isinstance(fault, feedparser.NonXMLContentType):
        return []
    if isinstance(fault, feedparser.CharacterEncodingUnknown):
        return ["its encoding is unknown, so some characters may be wrong"]
    if isinstance(fault, feedparser.CharacterEncodingOverride):
        return [f"its encoding is not what it says: {fault}"]
    return [f"it is not well-formed XML, and was read as far as that goes: {fault}"[:500]]


class _FeedparserReader:
    """Turns feedparser's dictionaries into the model."""

    def __init__(self, url: str, feed: Values) -> None:
        self._url = url
        self._feed = feed

    def read(
        self, version: str, entries: Iterable[Values], body: bytes, notices: list[str]
    ) -> ReadFeed:
        links = links_in(self._feed)
        hubs = [text_in(one, "href") for one in links if text_in(one, "rel") == "hub"]
        selves = [text_in(one, "href") for one in links if text_in(one, "rel") == "self"]
        head = self._head()
        head.feed_url = selves[0] if selves else ""
        head.hubs = [FeedHub("WebSub", one) for one in hubs]
        return ReadFeed(
            format=next(family for start, family in _FAMILIES if version.startswith(start)),
            version=feedparser.api.SUPPORTED_VERSIONS.get(version, version),
            head=head,
            items=identified(map(self._item, entries)),
            hints=self._hints(body),
            self_url=head.feed_url,
            hub_urls=tuple(hubs),
            cloud=cloud_in(inside(self._feed, "cloud")),
            notices=tuple(notices),
        )

    def _head(self) -> FeedHead:
        feed = self._feed
        picture = text_in(feed, "logo") or text_in(inside(feed, "image"), "href")
        return FeedHead(
            title=plain_in(feed, "title"),
            home_page_url=self._absolute(text_in(feed, "link")),
            description=plain_in(feed, "subtitle"),
            icon=self._absolute(picture),
            favicon=self._absolute(text_in(feed, "icon")),
            language=text_in(feed, "language"),
            authors=self._authors(feed),
            tags=tags_in(feed),
            copyright=plain_in(feed, "rights"),
        )

    def _hints(self, body: bytes) -> PollHints:
        skipped = [(kind.lower(), value.decode()) for kind, value in _SKIPPED.findall(body)]
        return read_hints(
            text_in(self._feed, "ttl"),
            [value for kind, value in skipped if kind == b"hour"],
            [value for kind, value in skipped if kind == b"day"],
            text_in(self._feed, "sy_updateperiod"),
            text_in(self._feed, "sy_updatefrequency"),
        )

    def _item(self, entry: Values) -> Item:
        pictures = [text_in(one, "url") for one in dictionaries(entry, "media_thumbnail")]
        picture = text_in(inside(entry, "image"), "href") or next(iter(pictures), "")
        item = Item(
            id=text_in(entry, "id"),
            url=self._link(entry),
            title=plain_in(entry, "title"),
            image=self._absolute(picture),
            date_published=date_in(entry, "published") or date_in(entry, "created"),
            date_modified=date_in(entry, "updated"),
            authors=self._authors(entry),
            tags=tags_in(entry),
            attachments=self._attachments(entry),
        )
        item.url = item.url or self._other_link(entry)
        self._take_content(entry, item)
        return item

    def _take_content(self, entry: Values, item: Item) -> None:
        summary = inside(entry, "summary_detail") or {"value": text_in(entry, "summary")}
        contents = [one for one in dictionaries(entry, "content") if text_in(one, "value")]
        for content in contents or [summary]:
            kind, value = content.get("type", "text/html"), text_in(content, "value")
            if kind in HTML and not item.content_html:
                item.content_html = with_absolute_links(value, content.get("base") or self._url)
            elif kind == "text/plain" and not item.content_text:
                item.content_text = value
        value = text_in(summary, "value")
        if contents and value and value not in (one["value"] for one in contents):
            item.summary = to_text(value) if summary.get("type") in HTML else value

    def _attachments(self, entry: Values) -> list[Attachment]:
        enclosed = [one for one in links_in(entry) if text_in(one, "rel") == "enclosure"]
        found: dict[str, Attachment] = {}
        for one in [*enclosed, *dictionaries(entry, "media_content")][:MAX_LISTED]:
            place = self._absolute(text_in(one, "href") or text_in(one, "url"))
            if place and place not in found:
                found[place] = Attachment(
                    place,
                    text_in(one, "type") or "application/octet-stream",
                    text_in(one, "title"),
                    size_bytes(text_in(one, "length") or text_in(one, "filesize")),
                    duration_s(text_in(one, "duration")),
                )
        attachments = list(found.values())
        if attachments and attachments[0].duration_in_seconds is None:
            attachments[0].duration_in_seconds = duration_s(text_in(entry, "itunes_duration"))
        return attachments

    def _other_link(self, entry: Values) -> str:
        """Returns an alternate that is no HTML, which feedparser takes for no link."""
        alternates = (one for one in links_in(entry) if text_in(one, "rel") == "alternate")
        return self._absolute(next((text_in(one, "href") for one in alternates), ""))

    def _authors(self, values: Values) -> list[Author]:
        found = []
        for one in dictionaries(values, "authors")[:MAX_LISTED]:
            name, email = text_in(one, "name"), text_in(one, "email")
            url = self._absolute(text_in(one, "href")) or (f"mailto:{email}" if email else "")
            author = Author(name, url)
            if author != Author() and author not in found:
                found.append(author)
        return found

    def _link(self, entry: Values) -> str:
        """Returns the link of an entry. An id counts as link in feedparser; here only if it is a
        URL."""
        link = text_in(entry, "link")
        return "" if link == text_in(entry, "id") and "://" not in link else self._absolute(link)

    def _absolute(self, reference: str) -> str:
        return absolute(self._url, reference)
