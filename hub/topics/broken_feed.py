"""Entries of feeds that are not well-formed: each is found by its tags, and read by itself.

One without a fault is read as in a well-formed feed, so it stays known when its feed breaks and
when it is mended; feedparser reads the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..formats.early_end import FEED_ROOT
from ..formats.lenient import read_leniently
from ..formats.read_feed import FeedRefused
from .entries import FeedEntry, digest_of
from .entry_places import EntryPlaces
from .xml_feed import read_xml_feed

_TAG = re.compile(
    rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|"
    rb"<(?P<end>/?)(?P<name>(?:[\w.-]+:)?(?:item|entry|deleted-entry))(?:\s[^<>]*?)?(?P<empty>/?)>",
    re.DOTALL | re.IGNORECASE,
)
_DECLARATION = re.compile(rb"<\?xml\s[^<>]*\?>")


def read_broken_feed(body: bytes) -> EntryPlaces:
    """Returns the whole entries, none of what is no feed. It is too slow for the event loop."""
    places = EntryPlaces(body)
    root = FEED_ROOT.search(body)
    if root is None:
        return places
    before, after = _frame(body, root.start(), root[1])
    for start, end in _positions(body, root.end()):
        if places.is_full:
            places.leave_out(start, end)
        else:
            places.add(start, end, _entry(before + body[start:end] + after, body[start:end]))
    return places


def _frame(body: bytes, start: int, name: bytes) -> tuple[bytes, bytes]:
    """Returns what makes a feed of one entry: the declaration and the root of its document."""
    declaration = _DECLARATION.search(body, 0, start)
    root = body[start : body.find(b">", start) + 1]
    before = root if declaration is None else declaration[0] + root
    if name.lower() == b"rss":
        return before + b"<channel>", b"</channel></" + name + b">"
    return before, b"</" + name + b">"


def _positions(body: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Yields begin and end of each entry. One that has no end tag is passed over."""
    begin, name = 0, b""
    for tag in _TAG.finditer(body, start):
        if tag["name"] is None:
            continue  # a comment or CDATA, which may show tags
        if tag["empty"]:
            if tag["name"].endswith(b"deleted-entry") and not name:
                yield tag.start(), tag.end()
        elif not tag["end"]:
            begin, name = tag.start(), tag["name"]
        elif tag["name"] == name:
            yield begin, tag.end()
            name = b""


def _entry(document: bytes, piece: bytes) -> FeedEntry:
    """Reads an entry that is the only one of its document."""
    feed = read_xml_feed(document)
    if feed.broken is None and feed.entries:
        return feed.entries[0]
    try:
        found = read_leniently("", "application/xml", document)
    except FeedRefused:
        found = None
    if found is None or not found.items:
        digest = digest_of(piece.decode("latin-1"))
        return FeedEntry(digest, digest)
    return FeedEntry(found.items[0].item.id, found.items[0].digest)
