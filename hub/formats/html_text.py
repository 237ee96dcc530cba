"""HTML inside feeds: as plain text, and with absolute links. Nothing is sanitised.

Regular expressions do for both: nothing is laid out, and what is no HTML is kept as it is.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from urllib.parse import urljoin, urlsplit

_UNSEEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_MARKUP = re.compile(r"</\w+>|<br\b|&#?\w+;")
_NAMED_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]*+)[^<>]*+>")
_BLOCKS = frozenset(
    (
        "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption",
        "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav",
        "ol", "p", "pre", "section", "table", "td", "th", "tr", "ul",
    )
)  # fmt: skip
_MAX_URL_CHARACTERS = 8_192
_NAMES = (
    "action", "background", "cite", "data", "formaction", "href", "longdesc", "poster", "src",
    "srcset",
)  # fmt: skip
_REFERENCE = re.compile(
    rf"""(?P<name>[\s"'](?:{"|".join(_NAMES)})\s*=\s*)"""
    r"""(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'>]+))""",
    re.IGNORECASE,
)
_CANDIDATE = re.compile(r"([^\s,](?:\S*[^\s,])?)(\s+[0-9.]+[hwx])?")
"""A picture of `srcset`, with its width or density (HTML 4.8.4.2.1)."""
_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BEHIND_NAME = "|".join(f"(?<={name}=)" for name in (*_NAMES, r"\s"))
_MAYBE_RELATIVE = re.compile(
    rf"""=(?!\s*+["']?+\s*+(?:[A-Za-z][A-Za-z0-9+.-]*:|\#))(?:{_BEHIND_NAME})""", re.IGNORECASE
)
"""Begins with a character that is found quickly: nearly all content has absolute links alone."""


def to_text(markup: str) -> str:
    """Returns the text that a reader of the HTML sees, with single blanks."""
    if "<" in markup:
        markup = _NAMED_TAG.sub(_gap, visible(markup, " "))
    return " ".join(html.unescape(markup).split())


def without_blanks(markup: str) -> str:
    """Returns the text of HTML, whatever stands between its words: faster than `to_text`, for
    comparisons."""
    if "<" in markup:
        markup = _TAG.sub("", visible(markup, ""))
    return "".join(html.unescape(markup).replace(" ", "").split())


def looks_like_html(text: str) -> bool:
    """Returns whether readers take the text for HTML where a format does not say what it is."""
    return _MARKUP.search(text) is not None


def with_absolute_links(markup: str, base: str) -> str:
    """Returns the HTML with its relative links resolved; all else is unchanged.

    Links to a fragment stay: they lead to a place inside the content.
    """
    if not base or _MAYBE_RELATIVE.search(markup) is None:
        return markup
    return _TAG.sub(lambda tag: _REFERENCE.sub(lambda one: _resolved(one, base), tag[0]), markup)


def absolute(base: str, reference: str) -> str:
    """Returns the URL that the reference means, "" for one that is no URL or too long for a
    request."""
    reference = reference.strip()
    if len(reference) > _MAX_URL_CHARACTERS:
        return ""
    if not reference or (_HAS_SCHEME.match(reference) and "[" not in reference):
        return reference
    try:
        if reference[0] == "/" and reference[:2] != "//" and "/." not in reference:
            return _origin(base) + reference
        urlsplit(reference)
        return urljoin(base, reference)
    except ValueError:
        return ""


@lru_cache(100)
def _origin(base: str) -> str:
    """Returns scheme and host; there are few bases in a document, and a process reads many."""
    split = urlsplit(base)
    return f"{split.scheme}://{split.netloc}" if split.netloc else ""


def visible(markup: str, gap: str) -> str:
    """Returns HTML without the elements that are not shown; nearly all content has none of them."""
    lower = markup.lower()
    if "<!--" in lower or "<script" in lower or "<style" in lower or "<template" in lower:
        return _UNSEEN.sub(gap, markup)
    return markup


def _gap(tag: re.Match[str]) -> str:
    """Returns what a reader sees between the texts around a tag."""
    return " " if tag[1].lower() in _BLOCKS else ""


def _resolved(reference: re.Match[str], base: str) -> str:
    value = reference["double"] or reference["single"] or reference["bare"] or ""
    plain = html.unescape(value).strip()
    if not plain or plain.startswith("#") or _HAS_SCHEME.match(plain):
        return reference[0]
    if reference["name"].lower().lstrip("\t\n\f\r \"'").startswith("srcset"):
        found = _CANDIDATE.findall(plain)
        url = ", ".join(f"{absolute(base, one)}{size}" for one, size in found)
    else:
        url = absolute(base, plain)
    return f'{reference["name"]}"{html.escape(url)}"'
