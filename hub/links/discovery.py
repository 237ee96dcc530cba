"""Discovery of the hubs and the own URL of a topic (WebSub 4).

Link fields of the answer have precedence over the document. In a document only those places count
that its publisher alone writes: the top level of a feed, the head of a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from .feed import read_feed
from .found import FoundLinks
from .header import read_link_fields
from .json_feed import read_json_feed
from .page import read_page
from .resolving import resolve

MAX_HUBS = 10
_VAGUE = frozenset(("", "text/plain", "application/octet-stream", "text/html"))
"""Types that some servers send for feeds by mistake."""
_FEED_ROOT = re.compile(
    rb"(?>[\0-\x20\xef\xbb\xbf]+|<\?.*?\?>|<!--.*?-->)*+"
    rb"<(?:!(?i:DOCTYPE)\s+)?(?:[A-Za-z_]+:)?(?:feed|rss|RDF)\b",
    re.DOTALL,
)
_SNIFFED_BYTES = 2_048


@dataclass(frozen=True, slots=True)
class Links:
    """Absolute http and https URLs without fragments."""

    hubs: tuple[str, ...] = ()
    """Each once, https first, else in the order of the document."""
    self_url: str | None = None


def discover(url: str, link_fields: Iterable[str], content_type: str, body: bytes) -> Links:
    """Returns the links of the document at `url`, which is the URL after redirects.

    `link_fields` are the values of all Link fields. The first place that names a hub counts for
    hubs, and for `self` if it names one (WebSub 4; websub.rocks 100-104). Foreign documents may
    take seconds and some hundred megabytes, so this runs in a worker process (`remote.py`).
    """
    header = read_link_fields(link_fields)
    found = header
    if not (header.hubs and header.selves):
        inside = read_document(content_type, body)
        found = FoundLinks(header.hubs or inside.hubs, _selves(header, inside))
    selves = _resolved(url, found.selves)
    hubs = _resolved(url, found.hubs)[:MAX_HUBS]
    hubs.sort(key=lambda one: urlsplit(one).scheme != "https")
    return Links(tuple(hubs), selves[0] if selves else None)


def read_document(content_type: str, body: bytes) -> FoundLinks:
    """Returns the links in the document itself, by its type."""
    media_type = media_type_of(content_type)
    if _is_xml(media_type) or (media_type in _VAGUE and looks_like_feed(body)):
        return read_feed(body)
    if media_type in ("text/html", "application/xhtml+xml"):
        return read_page(body, content_type)
    if media_type == "application/json" or media_type.endswith("+json"):
        return read_json_feed(body)
    return FoundLinks()


def looks_like_feed(body: bytes) -> bool:
    """Returns whether the first element is that of a feed, in any Unicode encoding."""
    start = body[:_SNIFFED_BYTES].lstrip(b"\xef\xbb\xbf\xfe\xff").replace(b"\0", b"")
    return _FEED_ROOT.match(start) is not None


def media_type_of(content_type: str) -> str:
    """Returns the type without parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def _is_xml(media_type: str) -> bool:
    if media_type == "application/xhtml+xml":
        return False
    return media_type in ("text/xml", "application/xml") or media_type.endswith("+xml")


def _selves(header: FoundLinks, inside: FoundLinks) -> list[tuple[str, str]]:
    first, second = (header, inside) if header.hubs else (inside, header)
    return first.selves or second.selves


def _resolved(url: str, references: list[tuple[str, str]]) -> list[str]:
    """Returns the HTTP URLs among them, each once, without those too long for a request."""
    found = (resolve(url, base, reference) for base, reference in references)
    return list(dict.fromkeys(one for one in found if one is not None))
