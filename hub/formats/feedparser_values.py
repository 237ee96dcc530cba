"""Values in feedparser's dictionaries, where elements of foreign names may stand in any place.

The dictionaries have aliases that warn, so they are read as plain ones.
"""

from __future__ import annotations

from typing import Any

from .dates import from_parts
from .html_text import to_text
from .numbers import size_bytes
from .read_feed import MAX_LISTED, Cloud

Values = dict[str, Any]
HTML = ("text/html", "application/xhtml+xml")


def text_in(values: Values, name: str) -> str:
    """Returns a text, "" for any other value; surrogates are no text."""
    value = dict.get(values, name)
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode(errors="replace").decode()


def inside(values: Values, name: str) -> Values:
    """Returns a dictionary, an empty one for any other value."""
    value = dict.get(values, name)
    return value if isinstance(value, dict) else {}


def dictionaries(values: Values, name: str) -> list[Values]:
    """Returns the dictionaries of a list; foreign elements of that name may stand in its place."""
    found = dict.get(values, name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def plain_in(values: Values, name: str) -> str:
    """Returns a text without its markup."""
    value, detail = text_in(values, name), inside(values, f"{name}_detail")
    return to_text(value) if detail.get("type") in HTML else value


def date_in(entry: Values, name: str) -> str:
    """Returns a date as RFC 3339."""
    return from_parts(dict.get(entry, f"{name}_parsed"))


def links_in(values: Values) -> list[Values]:
    """Returns the links that lead somewhere."""
    return [one for one in dictionaries(values, "links") if text_in(one, "href")]


def tags_in(values: Values) -> list[str]:
    """Returns the labels or terms of categories, each once."""
    texts = (text_in(one, "label") or text_in(one, "term") for one in dictionaries(values, "tags"))
    return list(dict.fromkeys(text for text in texts if text))[:MAX_LISTED]


def cloud_in(values: Values) -> Cloud | None:
    """Returns the RSS cloud, None without a usable one."""
    port = size_bytes(text_in(values, "port"))
    if not (text_in(values, "domain") and port and port < 65_536):
        return None
    procedure, protocol = text_in(values, "registerprocedure"), text_in(values, "protocol").lower()
    return Cloud(text_in(values, "domain"), port, text_in(values, "path"), procedure, protocol)
