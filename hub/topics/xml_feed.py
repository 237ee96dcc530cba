"""Atom, RSS and RDF: where the entries stand, what they are called and what they say.

An entry says its titles, texts and links, not its dates, which some servers set at each fetch,
nor counts of views and comments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..links.safe_xml import Broken, local_name, parse
from .entries import MAX_ENTRIES, Entry, digest_of

_PARENTS = (("feed",), ("rss", "channel"), ("RDF",))
_ENTRIES = ("entry", "item")
_SAYING = frozenset(("title", "summary", "content", "description", "encoded", "link", "enclosure"))
_SAYING_LINKS = frozenset(("", "alternate", "enclosure", "related", "via"))
"""Others are about the feed's making, such as a `rel=edit` that numbers versions."""
_NAMES = ("id", "guid")
_ABOUT = "http://www.w3.org/1999/02/22-rdf-syntax-ns# about"
_REFERENCES = ("href", "src", "url")


@dataclass(slots=True)
class Placed:
    """An entry in the bytes of its document, from `start` up to `end`."""

    start: int
    end: int
    entry: Entry


@dataclass(slots=True)
class XmlFeed:
    """`is_feed` tells whether the document is one at all."""

    body: bytes
    is_feed: bool
    placed: list[Placed]
    extra: list[tuple[int, int]]
    """Where entries beyond the limit begin and end."""
    broken: Broken | None

    @property
    def entries(self) -> list[Entry]:
        return [one.entry for one in self.placed]

    @property
    def has_more(self) -> bool:
        return bool(self.extra)

    def only(self, selected: Sequence[bool]) -> bytes:
        """The document without the other entries; all else is left as it is, to the byte."""
        cuts = [
            (one.start, one.end)
            for one, is_selected in zip(self.placed, selected, strict=True)
            if not is_selected
        ]
        parts, position = [], 0
        for start, end in [*cuts, *self.extra]:
            parts.append(self.body[position:start])
            position = end
        return b"".join([*parts, self.body[position:]])


def read_xml_feed(body: bytes) -> XmlFeed:
    """Entries that end before the document breaks off, if it does. Not for the event loop."""
    reader, broken = parse(body, lambda: _Reader(body))
    is_feed = reader.root in ("feed", "rss", "RDF")
    return XmlFeed(body, is_feed, reader.placed, reader.extra, broken)


@dataclass(slots=True)
class _Open:
    """The entry being read."""

    start: int
    depth: int
    name: str = ""
    link: str = ""
    title: str = ""
    is_empty: bool = True
    said: list[str] = field(default_factory=list)


class _Reader:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self.root = ""
        self.placed: list[Placed] = []
        self.extra: list[tuple[int, int]] = []
        self._path: list[str] = []
        self._open: _Open | None = None
        self._text: list[str] | None = None
        """Text of the element at `_text_depth`, while it is one that counts."""
        self._text_depth = 0

    def begin(self, name: str, attributes: dict[str, str], at: int) -> None:
        local = local_name(name)
        if not self._path:
            self.root = local
        if self._open is not None:
            self._begin_inside(self._open, local, attributes)
        elif local in _ENTRIES and tuple(self._path) in _PARENTS:
            self._open = _Open(at, len(self._path), name=attributes.get(_ABOUT, ""))
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
            entry.said += [attributes[one] for one in _REFERENCES if one in attributes]
        if is_child and local == "link" and attributes.get("rel", "alternate") == "alternate":
            entry.link = entry.link or attributes.get("href", "")

    def _take(self, entry: _Open, local: str, depth: int) -> None:
        said = " ".join("".join(self._text or ()).split())
        self._text = None
        is_child = depth == entry.depth + 1
        if is_child and local in _NAMES:
            entry.name = entry.name or said
            return
        entry.said += [local, said]
        if is_child and local == "link":
            entry.link = entry.link or said

    def _close(self, entry: _Open, at: int) -> None:
        self._open = None
        if entry.is_empty:
            return  # nothing to tell apart, and `at` is not its end tag
        end = _after_tag(self._body, at)
        if len(self.placed) < MAX_ENTRIES:
            self.placed.append(Placed(entry.start, end, self._entry(entry, end)))
        elif self.extra and not self._body[self.extra[-1][1] : entry.start].strip():
            self.extra[-1] = (self.extra[-1][0], end)
        else:
            self.extra.append((entry.start, end))

    def _entry(self, entry: _Open, end: int) -> Entry:
        said = entry.said or [self._body[entry.start : end].decode("latin-1")]
        digest = digest_of(*said)
        return Entry(entry.name or entry.link or digest, digest)


def _counts(local: str, attributes: dict[str, str], is_child: bool) -> bool:
    if local == "link":
        return attributes.get("rel", "") in _SAYING_LINKS
    return local in _SAYING or (is_child and local in _NAMES)


def _after_tag(body: bytes, at: int) -> int:
    """Returns the offset behind the end tag that begins here, with one or two bytes a character."""
    end = body.index(b">", at) + 1
    if body[at : at + 2] == b"<\0":  # UTF-16, the low byte first
        return end + 1
    return end
