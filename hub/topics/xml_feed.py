"""Atom, RSS and RDF: the positions, names and contents of a feed's entries.

The content of an entry is its titles, texts and links; not its dates, which some servers set at
each fetch, nor counts of views and comments. The tombstone of a deleted entry is an entry with its
name: one that comes back with the content that it had is new again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..links.safe_xml import Broken, local_name, parse
from .entries import FeedEntry, digest_of
from .entry_places import EntryPlaces

_PARENTS = (("feed",), ("rss", "channel"), ("RDF",))
_ENTRIES = ("entry", "item")
_TOMBSTONE = "http://purl.org/atompub/tombstones/1.0 deleted-entry"
"""It says that the entry with the id in `ref` was deleted (RFC 6721 3)."""
_CONTENT = frozenset(("title", "summary", "content", "description", "encoded", "link", "enclosure"))
_CONTENT_LINKS = frozenset(("", "alternate", "enclosure", "related", "via"))
"""Others concern editing, such as a `rel=edit` with version numbers."""
_NAMES = ("id", "guid")
_ABOUT = "http://www.w3.org/1999/02/22-rdf-syntax-ns# about"
_REFERENCES = ("href", "src", "url")


@dataclass(slots=True)
class XmlFeed(EntryPlaces):
    """A document with the positions of its entries."""

    is_feed: bool = False
    broken: Broken | None = None
    """The fault before which its entries end."""


def read_xml_feed(body: bytes) -> XmlFeed:
    """Returns the entries that end before any fault. It is too slow for the event loop."""
    reader, broken = parse(body, lambda: _EntryReader(body))
    places, is_feed = reader.places, reader.root in ("feed", "rss", "RDF")
    return XmlFeed(body, places.placed, places.extra, is_feed, broken)


@dataclass(slots=True)
class _Open:
    """An entry that has begun."""

    start: int
    depth: int
    name: str = ""
    link: str = ""
    title: str = ""
    is_empty: bool = True
    is_tombstone: bool = False
    content: list[str] = field(default_factory=list)


class _EntryReader:
    """Collects entries while the document is parsed."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.root = ""
        self.places = EntryPlaces(body)
        self._path: list[str] = []
        self._open: _Open | None = None
        self._text: list[str] | None = None
        """The text of the element at `_text_depth`, while that is part of an entry's content."""
        self._text_depth = 0

    def begin(self, name: str, attributes: dict[str, str], at: int) -> None:
        local = local_name(name)
        if not self._path:
            self.root = local
        if self._open is not None:
            self._begin_inside(self._open, local, attributes)
        elif local in _ENTRIES and tuple(self._path) in _PARENTS:
            self._open = _Open(at, len(self._path), name=attributes.get(_ABOUT, ""))
        elif name == _TOMBSTONE and self._path == ["feed"]:
            when = [local, attributes.get("when", "")]
            self._open = _Open(at, 1, attributes.get("ref", ""), is_tombstone=True, content=when)
        self._path.append(local)

    def end(self, name: str, at: int) -> None:
        self._path.pop()
        if self._open is None:
            return
        depth = len(self._path)
        if self._text is not None and depth == self._text_depth:
            self._take(self._open, local_name(name), depth)
        if depth == self._open.depth:
            self._close(self._open, at)

    def text(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def _begin_inside(self, entry: _Open, local: str, attributes: dict[str, str]) -> None:
        entry.is_empty = False
        is_child = len(self._path) == entry.depth + 1
        if self._text is None and _counts(local, attributes, is_child):
            self._text, self._text_depth = [], len(self._path)
        if self._text is not None:
            entry.content += [attributes[one] for one in _REFERENCES if one in attributes]
        if is_child and local == "link" and attributes.get("rel", "alternate") == "alternate":
            entry.link = entry.link or attributes.get("href", "")

    def _take(self, entry: _Open, local: str, depth: int) -> None:
        text = " ".join("".join(self._text or ()).split())
        self._text = None
        is_child = depth == entry.depth + 1
        if is_child and local in _NAMES:
            entry.name = entry.name or text
            return
        entry.content += [local, text]
        if is_child and local == "link":
            entry.link = entry.link or text

    def _close(self, entry: _Open, at: int) -> None:
        self._open = None
        if entry.is_empty and not entry.is_tombstone:
            return  # it has no content, and `at` is not its end tag
        has_end_tag = not (entry.is_empty and _is_after_empty_tag(self._body, at))
        end = _after_tag(self._body, at) if has_end_tag else at
        if self.places.is_full:
            self.places.leave_out(entry.start, end)
        else:
            self.places.add(entry.start, end, self._entry(entry, end))

    def _entry(self, entry: _Open, end: int) -> FeedEntry:
        content = entry.content or [self._body[entry.start : end].decode("latin-1")]
        digest = digest_of(*content)
        return FeedEntry(entry.name or entry.link or digest, digest)


def _counts(local: str, attributes: dict[str, str], is_child: bool) -> bool:
    if local == "link":
        return attributes.get("rel", "") in _CONTENT_LINKS
    return local in _CONTENT or (is_child and local in _NAMES)


def _is_after_empty_tag(body: bytes, at: int) -> bool:
    return body[at - 4 : at].replace(b"\0", b"").endswith(b"/>")


def _after_tag(body: bytes, at: int) -> int:
    """Returns the offset after the end tag at `at`; characters have one or two bytes."""
    end = body.index(b">", at) + 1
    if body[at : at + 2] == b"<\0":  # UTF-16, little-endian
        return end + 1
    return end
