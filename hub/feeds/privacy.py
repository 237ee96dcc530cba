"""Hides the URLs of private feeds, which may contain a secret, as those of paid feeds do."""

from __future__ import annotations

import re
from typing import Any, Final

from .feed import Feed

_URL: Final = re.compile(r"\b([a-z][a-z0-9+.-]*://)(?:[^/?#@\s]*@)?([^/?#\s'\"]+)[^\s'\"]*", re.I)


def may_see_urls(feed: Feed, user: str, *, is_administrator: bool) -> bool:
    """Returns whether the user may see the URLs of a feed, and change it if permitted to write."""
    return is_administrator or feed.owner == user or feed.request.visibility == "public"


def without_paths(value: Any) -> Any:
    """Returns a document in whose texts URLs are cut to scheme and host."""
    if isinstance(value, dict):
        return {name: without_paths(one) for name, one in value.items()}
    if isinstance(value, list):
        return [without_paths(one) for one in value]
    return _URL.sub(r"\1\2/...", value) if isinstance(value, str) else value
