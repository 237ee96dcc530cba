"""The feeds that a page names in its head (HTML 4.6.7.1: `alternate` with the type of a feed), or
its Link fields do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .found import Alternate
from .header import read_link_fields
from .page import read_page
from .resolving import resolve

MAX_FEEDS = 20
FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/feed+json")
OLD_JSON_TYPE = "application/json"
"""The type of feeds in JSON Feed 1.0, but also of other data, so it counts where nothing else is
named."""


@dataclass(frozen=True, slots=True)
class NamedFeed:
    """A feed by its absolute URL."""

    url: str
    title: str
    media_type: str


def find_feeds(url: str, content_type: str, body: bytes) -> list[NamedFeed]:
    """Returns the feeds of the page at `url`, each once. It is too slow for the event loop."""
    return _feeds_of(url, read_page(body, content_type).alternates)


def feeds_of_fields(url: str, link_fields: Iterable[str]) -> list[NamedFeed]:
    """Returns the feeds that the Link fields of the answer for `url` name, each once."""
    return _feeds_of(url, read_link_fields(link_fields).alternates)


def _feeds_of(url: str, alternates: Iterable[Alternate]) -> list[NamedFeed]:
    found: dict[str, NamedFeed] = {}
    for one in alternates:
        kind = one.media_type.partition(";")[0].strip().lower()
        is_feed = kind in FEED_TYPES or kind == OLD_JSON_TYPE
        place = resolve(url, one.base, one.reference) if is_feed else None
        if place is not None:
            found.setdefault(place, NamedFeed(place, _short(one), kind))
    certain = [one for one in found.values() if one.media_type != OLD_JSON_TYPE]
    return (certain or list(found.values()))[:MAX_FEEDS]


def _short(one: Alternate) -> str:
    return " ".join(one.title.split())[:200]
