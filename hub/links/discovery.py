"""Which hubs a topic names, and which URL it calls its own (WebSub 4).

The Link fields of the answer go before the document, and of a document only those places count
that its publisher writes: the feed's own level, the page's head.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urldefrag, urljoin, urlsplit

from ..guard.guard import MAX_CALLBACK_LENGTH
from .feed import read_feed
from .found import Found
from .header import read_link_fields
from .json_feed import read_json_feed
from .page import read_page

MAX_HUBS = 10
_SCHEMES = ("https", "http")
_VAGUE = frozenset(("", "text/plain", "application/octet-stream", "text/html"))
"""Types that feeds are served with by mistake."""
_FEED_ROOT = re.compile(
    rb"(?>\s+|<\?.*?\?>|<!--.*?-->)*+<(?:!DOCTYPE\s+)?(?:[A-Za-z_]+:)?(?:feed|rss|RDF)\b",
    re.DOTALL,
)
_SNIFFED_BYTES = 2_048


@dataclass(frozen=True, slots=True)
class Links:
    """Absolute http and https URLs without fragments."""

    hubs: tuple[str, ...] = ()
    """Without repetition, https first, else in the order in which they are named."""
    self_url: str | None = None


def discover(url: str, link_fields: Iterable[str], content_type: str, body: bytes) -> Links:
    """What the document at `url`, where it was found in the end, says of itself.

    `link_fields` are the values of all Link fields. The first place that names hubs counts for
    them, and for `self` too if it names one (WebSub 4, rocks 100-104). Documents of others can
    take seconds and some hundred megabytes: for a worker process (`remote.py`).
    """
    header = read_link_fields(link_fields)
    found = header
    if not (header.hubs and header.selves):
        inside = read_document(content_type, body)
        found = Found(header.hubs or inside.hubs, _selves(header, inside))
    selves = _resolved(url, found.selves)
    hubs = _resolved(url, found.hubs)[:MAX_HUBS]
    hubs.sort(key=lambda one: urlsplit(one).scheme != "https")
    return Links(tuple(hubs), selves[0] if selves else None)


def read_document(content_type: str, body: bytes) -> Found:
    """The links in the document itself, by its type."""
    media_type = media_type_of(content_type)
    if _is_xml(media_type) or (media_type in _VAGUE and looks_like_feed(body)):
        return read_feed(body)
    if media_type in ("text/html", "application/xhtml+xml"):
        return read_page(body, content_type)
    if media_type == "application/json" or media_type.endswith("+json"):
        return read_json_feed(body)
    return Found()


def looks_like_feed(body: bytes) -> bool:
    """Whether the first element is that of an Atom, RSS or RDF feed, in any Unicode encoding."""
    start = body[:_SNIFFED_BYTES].lstrip(b"\xef\xbb\xbf\xfe\xff").replace(b"\0", b"")
    return _FEED_ROOT.match(start) is not None


def media_type_of(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _is_xml(media_type: str) -> bool:
    if media_type == "application/xhtml+xml":
        return False
    return media_type in ("text/xml", "application/xml") or media_type.endswith("+xml")


def _selves(header: Found, inside: Found) -> list[tuple[str, str]]:
    first, second = (header, inside) if header.hubs else (inside, header)
    return first.selves or second.selves


def _resolved(url: str, references: list[tuple[str, str]]) -> list[str]:
    """What can be asked over HTTP, each once; other schemes, broken ones and those that are too
    long for any request are left out."""
    found = (_resolve(url, base, reference) for base, reference in references)
    return list(dict.fromkeys(one for one in found if one is not None))


def _resolve(url: str, base: str, reference: str) -> str | None:
    if not reference:
        return None
    try:
        target = urldefrag(urljoin(urljoin(url, base), reference)).url
        split = urlsplit(target)
    except ValueError:
        return None
    is_usable = split.scheme in _SCHEMES and split.hostname and len(target) <= MAX_CALLBACK_LENGTH
    return target if is_usable else None
