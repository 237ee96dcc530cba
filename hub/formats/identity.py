"""Recognises the same item, and the same content, in two documents.

The id of an item is its Atom id, RSS guid, RDF about or JSON id; else its URL; else a digest of its
content. The digest of its content leaves out what changes without news: dates, of which some
servers write the present one, parameters of URLs that track readers, and images that count them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit, urlunsplit

from .html_text import without_blanks
from .model import Item
from .read_feed import ReadItem

_DIGEST_BYTES = 16
MAX_ID_BYTES = 1_024
"""PostgreSQL's index takes 2,704 bytes with the collection."""
_TRACKING = re.compile(
    r"(?:utm_\w+|at_(?:medium|campaign|custom\d?)|fbclid|gclid|dclid|msclkid|yclid|igshid|mc_[ce]id"
    r"|_ga|_gl|cmpid|ns_mchannel|ns_source|ns_campaign|ns_linkname|ns_fee|xtor|ftag|smid|guccounter"
    r"|source|rss|ref|ref_src|spm|mkt_tok|phpsessid|jsessionid|sid)=",
    re.IGNORECASE,
)
_LINK = re.compile(r"""<a\b[^<>]*?\shref\s*=\s*["']?([^\s"'<>]+)""", re.IGNORECASE)
_IMAGE = re.compile(r"""<(?:img|video|audio|source|iframe)\b[^<>]*>""", re.IGNORECASE)
_SOURCE = re.compile(r"""\ssrc\s*=\s*["']?([^\s"'<>]+)""", re.IGNORECASE)
_COUNTER = re.compile(r"""\s(?:width|height)\s*=\s*["']?[01](?:px)?["'\s/>]""", re.IGNORECASE)


def storable(name: str) -> str:
    """Returns an id that every database can index: a digest of one that is very long or has a NUL,
    which PostgreSQL refuses."""
    raw = name.encode(errors="surrogatepass")
    if len(raw) <= MAX_ID_BYTES and b"\0" not in raw:
        return name
    return "urn:warren:" + hashlib.sha256(raw).hexdigest()


def scoped(name: str, feed: str) -> str:
    """Returns an id that no item of another feed has: a URI is one, a number is not."""
    return storable(name if ":" in name else f"{feed}:{name}")


def names_of(own_id: str, url: str, digest: str) -> tuple[str, str, str]:
    """Returns the ids that an item may have, the shortest first: which of them depends on the other
    items of its document."""
    return own_id, storable(f"{own_id}#{url}"), storable(f"{own_id}#{url}#{digest}")


def identified(items: Iterable[Item]) -> list[ReadItem]:
    """Returns the items with ids and digests, each once.

    Where several have one id, all of them get the URL appended, and the digest if that is not
    enough. An item that repeats id, URL and content of another is left out.
    """
    found: dict[tuple[str, str, str], Item] = {}
    for item in items:
        digest = digest_of(item)
        own_id = storable(item.id or item.url or f"urn:warren:{digest}")
        found.setdefault((own_id, item.url, digest), item)
    by_id = Counter(own_id for own_id, _, _ in found)
    by_url = Counter((own_id, url) for own_id, url, _ in found)
    read = []
    for (own_id, url, digest), item in found.items():
        item.id = own_id
        if by_id[own_id] > 1:
            item.id = names_of(own_id, url, digest)[1 + (by_url[own_id, url] > 1)]
        read.append(ReadItem(item, digest, own_id if item.id != own_id else ""))
    return read


def digest_of(item: Item) -> str:
    """Returns a digest of 128 bits of the normalised content."""
    attached = [(one.url, one.mime_type) for one in item.attachments]
    parts: Sequence[str] = (
        " ".join(item.title.split()), *_normalised(item.content_html),
        " ".join(item.content_text.split()), " ".join(item.summary.split()),
        *map(without_tracking, (item.url, item.external_url)),
        *map(_without_query, (item.image, item.banner_image)),
        *(part for url, kind in attached for part in (without_tracking(url), kind)),
    )  # fmt: skip
    text = "\0".join(parts).encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


def without_tracking(url: str) -> str:
    """Returns the URL without parameters that track readers."""
    if "?" not in url:
        return url
    try:
        split = urlsplit(url)
    except ValueError:
        return url
    kept = [one for one in split.query.split("&") if not _TRACKING.match(one)]
    return urlunsplit(split._replace(query="&".join(kept)))


def _normalised(markup: str) -> list[str]:
    """Returns text and links of HTML; markup itself changes with the publisher's programs."""
    if "<" not in markup:
        return [without_blanks(markup)]
    links = [without_tracking(one) for one in _LINK.findall(markup)]
    for image in _IMAGE.findall(markup):
        source = _SOURCE.search(image)
        if source is not None and _COUNTER.search(image) is None:
            links.append(_without_query(source[1]))
    return [without_blanks(markup), *links]


def _without_query(url: str) -> str:
    return url.partition("?")[0]
