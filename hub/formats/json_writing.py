"""Writes JSON Feed 1.1."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .model import VERSION, FeedDocument, FeedHead, Item, members_of
from .sanitising import valid_head, valid_item
from .urls import DocumentUrls

_OWN = ("copyright", "tags")
"""Members that JSON Feed does not have: they are in the extension `_warren` of the document."""
_EXTENSION = re.compile(r"_[A-Za-z][^.]*")


def write_json_feed(document: FeedDocument, urls: DocumentUrls) -> bytes:
    """Returns the document in version 1.1."""
    head = _members(valid_head(document.head, urls))
    head["hubs"] = [{"type": "WebSub", "url": one} for one in urls.hub_urls]
    own = {name: head.pop(name) for name in _OWN if name in head}
    paging = {"next_url": urls.next_url} if urls.next_url else {}
    items = [_written(valid_item(one)) for one in document.items]
    members = {"version": VERSION, **head, **paging, **({"_warren": own} if own else {})}
    return msgspec.json.encode({**members, "items": items})


def _written(item: Item) -> dict[str, Any]:
    """Returns the members of an item; one of the contents is required (JSON Feed 1.1, Items)."""
    members = _members(item)
    if not (item.content_html or item.content_text):
        members["content_text"] = item.summary or item.title
    return members


def _members(value: Item | FeedHead) -> dict[str, Any]:
    """Returns the members, without extensions whose names JSON Feed does not allow."""
    members = members_of(value)
    return {
        name: _extension(one) if name[0] == "_" else one
        for name, one in members.items()
        if name[0] != "_" or _EXTENSION.fullmatch(name)
    }


def _extension(value: Any) -> Any:
    """Keys of an extension have no dot, and its name alone begins with `_`."""
    if not isinstance(value, dict):
        return value
    return {key: one for key, one in value.items() if key[:1] not in ("", "_") and "." not in key}
