"""Lists of feeds in OPML: what users have imported, and what is exported of it.

An outline keeps the id of the feed that it has become. All others are exported as they came:
folders, links, and feeds that were refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from urllib.parse import urldefrag

from msgspec.structs import replace

from ..formats.opml import Opml, Outline
from .feed import Feed
from .registry import url_key

SELECTOR = "selector"
"""The attribute of this program alone: what a page or data, that is no feed, is read by."""
_URL = "xmlUrl"


def feed_outlines(document: Opml) -> Iterator[tuple[str, Outline]]:
    """Yields the outlines of feeds in order, each with the titles of the folders around it, with
    slashes between them."""
    return _walk(document.outlines, ())


def merged(old: Opml, new: Opml, registered: Collection[str]) -> Opml:
    """Returns the new list, and behind it those of the registered feeds, which are given by id,
    that only the old one has."""
    only_old = set(registered).difference(outline.id for _, outline in feed_outlines(new))
    rest = _chosen(old.outlines, lambda one: one if one.id in only_old else None, is_whole=False)
    prefixes = {**old.prefixes, **new.prefixes}
    return replace(new, outlines=[*new.outlines, *rest], prefixes=prefixes)


def exported(head: Opml, lists: Sequence[Opml], feeds: Iterable[Feed], *, is_whole: bool) -> Opml:
    """Returns the feeds as a document with the head of another one: each in its places in the first
    list that has it, those in none behind.

    With `is_whole`, all is kept that is no registered feed.
    """
    remaining = {feed.id: feed for feed in sorted(feeds, key=_order)}
    outlines: list[Outline] = []
    prefixes = dict(head.prefixes)
    for one in lists:
        outlines += _chosen(one.outlines, lambda it: _current(it, remaining), is_whole=is_whole)
        for _, outline in feed_outlines(one):
            remaining.pop(outline.id, None)
        prefixes = {**one.prefixes, **prefixes}
    outlines += map(_new_outline, remaining.values())
    return replace(head, outlines=outlines, prefixes=prefixes)


def _walk(outlines: Sequence[Outline], folders: tuple[str, ...]) -> Iterator[tuple[str, Outline]]:
    for one in outlines:
        if one.feed_url:
            yield "/".join(folders), one
        yield from _walk(one.children, (*folders, one.title))


def _chosen(
    outlines: Sequence[Outline], of_feed: Callable[[Outline], Outline | None], *, is_whole: bool
) -> list[Outline]:
    """Returns the outlines of registered feeds that `of_feed` returns, with the folders around
    them; with `is_whole`, all that are no registered feeds too."""
    found: list[Outline] = []
    for one in outlines:
        children = _chosen(one.children, of_feed, is_whole=is_whole)
        if one.id:
            chosen = of_feed(one)
            found += children if chosen is None else [replace(chosen, children=children)]
        elif children or is_whole:
            found.append(replace(one, children=children))
    return found


def _current(outline: Outline, feeds: dict[str, Feed]) -> Outline | None:
    """Returns the outline of a feed, with its URL if that has changed since the import."""
    feed = feeds.get(outline.id)
    if feed is None or url_key(urldefrag(outline.feed_url).url) == url_key(feed.url):
        return None if feed is None else outline
    name = next(one for one in outline.attributes if one.lower() == _URL.lower())
    return replace(outline, attributes={**outline.attributes, name: feed.url})


def _new_outline(feed: Feed) -> Outline:
    status = feed.status
    attributes = {"text": status.title or feed.name, "type": "rss", _URL: feed.url}
    if status.home_page_url:
        attributes["htmlUrl"] = status.home_page_url
    if feed.request.selector:
        attributes[SELECTOR] = feed.request.selector
    return Outline(attributes)


def _order(feed: Feed) -> tuple[float, str]:
    return feed.status.registered_at, feed.name
