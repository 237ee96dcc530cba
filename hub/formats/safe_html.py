"""HTML of others made harmless: it runs no script, sends no form, and neither styles nor leaves the
page that it is shown in.

Only elements and attributes that are known to be harmless are kept. A tag that is not written
strictly is written anew, so that no browser reads another one in it. All steps take time in
proportion to the length, and nothing is laid out: what is harmless already is unchanged.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from .html_text import visible
from .urls import FOLLOWED, is_data

_ELEMENTS = frozenset(
    (
        "a", "abbr", "acronym", "address", "article", "aside", "audio", "b", "bdi", "bdo", "big",
        "blockquote", "br", "caption", "center", "cite", "code", "col", "colgroup", "dd", "del",
        "details", "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "font", "footer", "h1",
        "h2", "h3", "h4", "h5", "h6", "header", "hr", "i", "img", "ins", "kbd", "li", "main",
        "mark", "nav", "ol", "p", "picture", "pre", "q", "rp", "rt", "ruby", "s", "samp", "section",
        "small", "source", "span", "strike", "strong", "sub", "summary", "sup", "table", "tbody",
        "td", "tfoot", "th", "thead", "time", "tr", "track", "tt", "u", "ul", "var", "video", "wbr",
        # MathML Core
        "math", "merror", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded",
        "mphantom", "mprescripts", "mroot", "mrow", "ms", "mspace", "msqrt", "mstyle", "msub",
        "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover", "semantics",
    )
)  # fmt: skip
_ATTRIBUTES = frozenset(
    (
        "abbr", "accent", "align", "alt", "aria-hidden", "aria-label", "border", "cellpadding",
        "cellspacing", "class", "color", "cols", "colspan", "controls", "datetime", "dir",
        "display", "displaystyle", "face", "headers", "height", "hreflang", "hspace", "id", "kind",
        "label", "lang", "linethickness", "loading", "loop", "mathvariant", "media", "muted",
        "open", "preload", "rel", "reversed", "role", "rows", "rowspan", "scope", "size", "sizes",
        "span", "srclang", "start", "stretchy", "summary", "title", "type", "valign", "value",
        "vspace", "width",
    )
)  # fmt: skip
_LINKS = frozenset(("cite", "href"))
_LOADED = frozenset(("poster", "src", "srcset"))
_NOT_SHOWN = re.compile(
    r"<(annotation(?:-xml)?|noembed|noframes|svg|textarea|title)\b"
    r"(?:[^<>]*+(?<=/)>|.*?(?:</\1\s*>|\Z))",
    re.DOTALL | re.IGNORECASE,
)
"""Elements whose content is in another language, or is not part of the page."""
_NO_TAG = re.compile(r"<(?![A-Za-z/!?][^<>]*+>)")
_TAG = re.compile(
    r"<(?P<end>/?)(?P<name>[A-Za-z][^\s/<>]*+)"
    r"""(?:(?P<rest>(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+)>|(?P<loose>[^<>]*+)>)|<[^<>]*+>"""
)
"""A tag, also one with a quotation mark too many, or a declaration."""
_STRICT = re.compile(r"""(?:\s+[A-Za-z-]+=(?:"[^"<]*+"|'[^'<]*+'))*+\s*/?""")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'<>]++)))?""")
_BLANKS = re.compile(r"[\x00-\x20]+")
_SCHEME = re.compile(r"([^/?#:]*):")
_MAX_SCHEME_CHARACTERS = 1_000
"""With blanks inside, which browsers ignore."""
_ACTIVE = re.compile("(?:data|javascript|vbscript):", re.IGNORECASE)
_SCHEMES = re.compile(r"(?:^|[\s,])([A-Za-z][A-Za-z0-9+.-]*):")


def harmless(markup: str) -> str:
    """Returns the HTML without all that acts; frames become links to what they show."""
    if "<" not in markup:
        return markup
    shown = _NOT_SHOWN.sub("", visible(markup, ""))
    return _TAG.sub(_written, _NO_TAG.sub("&lt;", shown))


def is_active(text: str) -> bool:
    """Returns whether the text is a URL that runs a script or has a page of its own."""
    text = _BLANKS.sub("", text.lstrip()[:_MAX_SCHEME_CHARACTERS])
    return _ACTIVE.match(text) is not None and not is_data(text)


def _written(found: re.Match[str]) -> str:
    """Returns what becomes of a tag."""
    if not found["name"]:
        return ""
    name, rest = found["name"].lower(), found["rest"] or found["loose"] or ""
    if name not in _ELEMENTS:
        return _link_to_frame(rest) if name == "iframe" and not found["end"] else ""
    if found["end"]:
        return f"</{name}>"
    given = [] if rest in ("", "/", " /") else list(_attributes(rest))
    kept = [(one, value) for one, value in given if _is_harmless(one, value)]
    if len(kept) == len(given) and _STRICT.fullmatch(rest):
        return found[0]
    written = "".join(f' {one}="{value}"' for one, value in kept)
    return f"<{name}{written}{' /' if rest.endswith('/') else ''}>"


def _attributes(rest: str) -> Iterator[tuple[str, str]]:
    """Yields names and values, with references as in quotation marks."""
    for one in _ATTRIBUTE.finditer(rest):
        value = one[2] or one[3] or one[4] or ""
        yield one[1].lower(), value.replace('"', "&quot;")


def _is_harmless(name: str, value: str) -> bool:
    if name in _ATTRIBUTES:
        return True
    if name not in _LINKS and name not in _LOADED:
        return False
    text = html.unescape(value)
    if name == "srcset":
        return {one.lower() for one in _SCHEMES.findall(text)} <= {"http", "https"}
    text = _BLANKS.sub("", text)  # browsers do the same
    scheme = _SCHEME.match(text)
    if scheme is None or scheme[1].lower() in ("http", "https"):
        return True
    return scheme[1].lower() in FOLLOWED if name in _LINKS else is_data(text)


def _link_to_frame(rest: str) -> str:
    """Returns a link to the page in a frame, "" without one: often it is a video."""
    url = next((value for name, value in _attributes(rest) if name == "src"), "")
    text = html.unescape(url).strip()
    if not text.lower().startswith(("http://", "https://")):
        return ""
    return f'<a href="{html.escape(text)}">{html.escape(text, quote=False)}</a>'
