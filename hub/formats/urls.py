"""The URLs of a document that is written, and texts as URLs, languages and media types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

_IRI = re.compile(r"""[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"{}|\\^`\x00-\x20\x7f]+""")
FOLLOWED = frozenset(("http", "https", "ftp", "mailto", "magnet", "tel"))
"""What readers may be led to: other schemes run scripts or programs."""
_DATA = re.compile(r"data:(?![^,]*(?:html|xml|svg|script))", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
_MEDIA_TYPE = re.compile(r"[\w.+!#$&^-]+/[\w.+!#$&^-]+", re.ASCII)
_UNSAFE = re.compile(r"""[\s<>"{}|\\^`\x00-\x20\x7f]""")


@dataclass(frozen=True, slots=True)
class DocumentUrls:
    """The URLs of a document: its own, those of its hubs, and as `next_url` that of older items."""

    self_url: str
    hub_urls: tuple[str, ...] = ()
    next_url: str = ""

    @property
    def document_url(self) -> str:
        """The URL of the document, the same on each page and for each reader."""
        return self.self_url.partition("?")[0]


def is_iri(text: str) -> bool:
    """Returns whether the text is an absolute IRI (RFC 3987), as an Atom id has to be."""
    return _IRI.fullmatch(text) is not None


def link(text: str) -> str:
    """Returns an absolute URL to follow, with its blanks and quotation marks encoded, "" for other
    texts and schemes."""
    url = _encoded(text)
    return url if url.partition(":")[0].lower() in FOLLOWED and is_iri(url) else ""


def resource(text: str) -> str:
    """Returns the URL of a picture or an attachment as `link` does; it may have the data itself."""
    url = _encoded(text)
    return url if is_data(url) and is_iri(url) else link(url)


def is_data(url: str) -> bool:
    """Returns whether a URL has data that are no page, which could run scripts; SVG is one."""
    return _DATA.match(url) is not None


def as_iri(name: str) -> str:
    """Returns an id as an Atom id: the same if it is an IRI, else as `urn:warren:` and the id."""
    return name if is_iri(name) else f"urn:warren:{quote(name, safe='', errors='replace')}"


def as_guid(name: str) -> str:
    """Returns an id as a guid: the same if XML can have its characters, else as for Atom."""
    return name if name.isprintable() and name == name.strip() else as_iri(name)


def language(text: str) -> str:
    """Returns a language as RFC 5646 writes it, "" for other texts."""
    text = text.strip().replace("_", "-")
    return text if _LANGUAGE.fullmatch(text) else ""


def media_type(text: str) -> str:
    """Returns a media type without parameters, `application/octet-stream` for any other text."""
    found = _MEDIA_TYPE.match(text.strip())
    return found[0] if found else "application/octet-stream"


def _encoded(text: str) -> str:
    """Returns the text with the characters encoded that a URL can't have."""
    return _UNSAFE.sub(lambda one: quote(one[0], errors="replace"), text.strip())
