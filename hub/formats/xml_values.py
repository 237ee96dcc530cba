"""Values of elements: texts, contents, links, people and attachments."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from .html_text import absolute, looks_like_html, to_text, with_absolute_links
from .model import Attachment, Author
from .numbers import duration_s, size_bytes
from .xml_writing import inner_html

HTML_LINK_TYPES = ("", "text/html", "application/xhtml+xml")
"""Types of links that lead to pages; "" is for none."""
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_HTML = frozenset(("html", "text/html", "xhtml", "application/xhtml+xml"))
_TEXT = frozenset(("", "text", "text/plain", "plain"))
_WINDOWS_1252 = {
    code: text for code in range(0x80, 0xA0) if (text := bytes((code,)).decode("cp1252", "ignore"))
}
_MAX_AUTHOR_CHARACTERS = 1_000
"""In longer texts no address is looked for, which would take the square of their length."""
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


@dataclass(frozen=True, slots=True)
class TypedText:
    """A text with its type."""

    text: str = ""
    is_html: bool = False

    def plain(self) -> str:
        """Returns it without markup."""
        return to_text(self.text) if self.is_html else self.text


def base_of(element: Element, outer: str) -> str:
    """Returns the base of references inside the element (XML Base)."""
    return absolute(outer, element.get(_BASE, "")) or outer


def language_of(element: Element) -> str:
    """Returns the language that the element states, "" without one."""
    return element.get(_LANGUAGE, "").replace("_", "-")


def text_of(element: Element) -> str:
    """Returns the text with all that is inside, without blanks around it."""
    text = "".join(element.itertext()) if len(element) else element.text or ""
    return repaired(text.strip())


def repaired(text: str) -> str:
    """Returns the intended text of one that was decoded in the wrong encoding.

    UTF-8 that was read as ISO 8859-1 is read again; control characters that nothing means are those
    of Windows-1252 (HTML 13.2.5.80 has the same for references).
    """
    if text.isascii():
        return text
    try:
        text = text.encode("iso-8859-1").decode()
    except UnicodeError:
        pass  # It was not read in the wrong encoding.
    return text.translate(_WINDOWS_1252)


def atom_content(element: Element, base: str) -> TypedText | None:
    """Returns an Atom text or content (RFC 4287 3.1 and 4.1.3, Atom 0.3); None for other types."""
    kind = element.get("type", "").lower().partition(";")[0].strip()
    if element.get("mode") == "base64" and not len(element):
        return _decoded(element, kind, base)
    if len(element) or kind in ("xhtml", "application/xhtml+xml"):
        return html_content(element, base) if kind in _HTML | _TEXT else None
    if kind in _HTML:
        return html_content(element, base)
    return TypedText(text_of(element)) if kind in _TEXT else None


def html_content(element: Element, base: str) -> TypedText:
    """Returns HTML, escaped or as elements; a `div` around all of it is left out."""
    if len(element) == 0:
        return TypedText(with_absolute_links(text_of(element), base), is_html=True)
    inside = element
    if len(element) == 1 and element[0].tag in ("xhtml:div", "div") and not _has_text(element):
        inside = element[0]
        base = base_of(inside, base)
    return TypedText(with_absolute_links(repaired(inner_html(inside).strip()), base), is_html=True)


def rss_text(element: Element) -> str:
    """Returns a title or the like; RSS does not say whether it is HTML, so its looks decide."""
    text = text_of(element)
    return to_text(text) if looks_like_html(text) else text


def atom_author(element: Element, base: str) -> Author:
    """Returns a person (RFC 4287 3.2)."""
    parts = {child.tag.rpartition(":")[2].lower(): text_of(child) for child in element}
    email = parts.get("email", "")
    page = parts.get("uri", "") or parts.get("url", "") or parts.get("homepage", "")
    url = absolute(base, page)
    return Author(parts.get("name", ""), url or (f"mailto:{email}" if email else ""))


def rss_author(text: str) -> Author:
    """Returns a person of RSS: an address, a name, or both in one of several orders."""
    address = _EMAIL.search(text) if "@" in text and len(text) <= _MAX_AUTHOR_CHARACTERS else None
    if address is None:
        return Author(text)
    rest = (text[: address.start()] + text[address.end() :]).replace("mailto:", "")
    return Author(" ".join(rest.strip(" ()<>,;").split()), f"mailto:{address[0]}")


def attachment(element: Element, base: str) -> Attachment | None:
    """Returns an enclosure, of RSS, Atom or Media RSS; None without a URL."""
    url = absolute(base, element.get("href") or element.get("url") or "")
    if not url:
        return None
    return Attachment(
        url,
        element.get("type") or "application/octet-stream",
        element.get("title", ""),
        size_bytes(element.get("length") or element.get("fileSize") or ""),
        duration_s(element.get("duration", "")),
    )


def _decoded(element: Element, kind: str, base: str) -> TypedText | None:
    try:
        text = base64.b64decode(text_of(element), validate=False).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    if kind in _HTML:
        return TypedText(with_absolute_links(text, base), is_html=True)
    return TypedText(text)


def _has_text(element: Element) -> bool:
    return bool((element.text or "").strip() or (element[0].tail or "").strip())
