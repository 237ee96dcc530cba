"""Documents that end early: their connection was cut, or their length is stated too short."""

from __future__ import annotations

import re

EARLY_END = "it ends early, so what follows its last whole entry is left out until it comes whole"
FEED_ROOT = re.compile(rb"<((?:[\w.-]+:)?(?:feed|rss|rdf|channel))\b", re.IGNORECASE)
ITEM_END = re.compile(rb"</(?:[\w.-]+:)?(?:item|entry)\s*>", re.IGNORECASE)
_ITEM_BEGIN = re.compile(rb"<(?:[\w.-]+:)?(?:item|entry)\b", re.IGNORECASE)


def whole_part(body: bytes) -> bytes:
    """Returns the document up to its last whole item if the end of its root is missing, else all of
    it. Half an item would be published as a change of it, and again when it comes whole."""
    root = FEED_ROOT.search(body)
    end = 0
    for item in ITEM_END.finditer(body):
        end = item.end()
    if root is None or _has_end(body, root[1], end):
        return body
    if end:
        return body[:end]
    begin = _ITEM_BEGIN.search(body, root.end())
    return body if begin is None else body[: begin.start()]


def _has_end(body: bytes, root: bytes, start: int) -> bool:
    tag = re.compile(rb"</" + re.escape(root) + rb"\b", re.IGNORECASE)
    return tag.search(body, start) is not None
