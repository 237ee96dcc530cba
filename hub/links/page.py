"""The links in the head of an HTML page; its body may have text of others (WebSub 4)."""

from __future__ import annotations

import codecs
import contextlib
import re
from html.parser import HTMLParser

from .found import FoundLinks

_MAX_BYTES = 256 * 1024
_CHUNK = 16 * 1024
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE)
_READ_AS_STATED = frozenset(("utf-8", "utf-16", "utf-16le", "utf-16be"))
_OF_HEAD = frozenset(
    ("html", "head", "title", "base", "link", "meta", "style", "script", "noscript", "template")
)
"""Any other element begins the body, even without `</head>` (HTML 13.2.6.4.4)."""
_ENDS = frozenset(("head", "body", "html", "br"))
_OPAQUE = frozenset(("title", "style", "script", "noscript", "template"))
"""Elements whose contents are no markup, or inert."""


def read_page(body: bytes, content_type: str) -> FoundLinks:
    """Returns the links in the first 256 KiB. It is too slow for the event loop."""
    head, text = _HeadParser(), _decoded(body[:_MAX_BYTES], content_type)
    with contextlib.suppress(AssertionError):  # raised by html.parser for "<![<"
        for start in range(0, len(text), _CHUNK):
            head.feed(text[start : start + _CHUNK])
            if head.is_over:
                break
    return head.found


def _decoded(body: bytes, content_type: str) -> str:
    """Decodes other charsets than Unicode's as ISO 8859-1: their markup and URLs are ASCII."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    stated = _CHARSET.search(content_type)
    charset = "utf-8" if stated is None else stated[1].lower()
    return body.decode(charset if charset in _READ_AS_STATED else "iso-8859-1", "replace")


class _HeadParser(HTMLParser):
    """Collects links until the head ends."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found = FoundLinks()
        self.is_over = False
        self._inside = ""
        """The open element of `_OPAQUE`, "" without one."""
        self._base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._inside or self.is_over:
            return
        if tag not in _OF_HEAD:
            self.is_over = True
        elif tag in _OPAQUE:
            self._inside = tag
        else:
            self._take(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)  # in HTML `<title/>` opens a title

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""
        elif tag in _ENDS and not self._inside:
            self.is_over = True

    def handle_data(self, data: str) -> None:
        if not self._inside and data.strip():
            self.is_over = True

    def _take(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes: dict[str, str] = {}
        for name, value in attrs:
            attributes.setdefault(name, value or "")  # the first counts
        if tag == "base" and not self._base:
            self._base = attributes.get("href", "").strip()
        if tag == "link":
            self._take_link(attributes)

    def _take_link(self, attributes: dict[str, str]) -> None:
        relations, reference = attributes.get("rel", ""), attributes.get("href", "").strip()
        kind, title = attributes.get("type", ""), attributes.get("title", "")
        self.found.add(relations, reference, self._base, media_type=kind, title=title)
