"""Names of feeds: routing keys, parts of URLs, and words to type."""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Callable
from urllib.parse import urlsplit

from ..errors import BadRequest

MAX_NAME_LENGTH = 100
RESERVED = frozenset({"import"})
"""Paths below `/api/hub/feeds` that are no feeds."""
_NAME = re.compile(r"[A-Za-z0-9_~-]+(?:\.[A-Za-z0-9_~-]+)*")
_MOST_NUMBERED = 100
"""Feeds of one title that get numbers; more would be slow to number."""
_OTHERS = re.compile(r"[^a-z0-9]+")
_LEFT_OUT = re.compile(r"^(?:www|feeds?|rss)\.|\.(?:com|org|net)$")


def check_name(name: str) -> str:
    """Returns the name; raises `BadRequest` for one that a feed can't have. Raises `BadRequest`."""
    if len(name) > MAX_NAME_LENGTH or not _NAME.fullmatch(name) or name in RESERVED:
        raise BadRequest(
            "is not a valid feed name", field="name", value=name,
            limit=f"1 to {MAX_NAME_LENGTH} letters, digits, '-', '_', '~', and dots between them; "
            "not 'import'",
        )  # fmt: skip
    return name


def free_name(title: str, url: str, is_taken: Callable[[str], bool]) -> str:
    """Returns a name after the title, else after the host, with a number if it is taken."""
    base = _slug(title) or _slug(_LEFT_OUT.sub("", urlsplit(url).hostname or "")) or "feed"
    if base not in RESERVED and not is_taken(base):
        return base
    for number in range(2, _MOST_NUMBERED):
        if not is_taken(name := f"{base}-{number}"):
            return name
    return f"{base}-{secrets.token_hex(4)}"


def _slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return _OTHERS.sub("-", plain).strip("-")[: MAX_NAME_LENGTH // 2].strip("-")
