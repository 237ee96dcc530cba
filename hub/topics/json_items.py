"""JSON Feed 1.1: its items, and the same feed with some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..links.json_feed import NO_JSON, VERSION
from .entries import MAX_ENTRIES, FeedEntry, digest_of

_MARK = b"\xef\xbb\xbf"
_CONTENT = (
    "title", "content_html", "content_text", "summary", "url", "external_url", "attachments",
)  # fmt: skip


@dataclass(slots=True)
class JsonFeed:
    """A JSON Feed; all but its items stays as its publisher wrote it."""

    members: dict[str, msgspec.Raw]
    items: list[msgspec.Raw]
    entries: list[FeedEntry]
    """The entries of the first `MAX_ENTRIES` items."""

    @property
    def has_more(self) -> bool:
        """Whether there are items beyond the limit."""
        return len(self.items) > len(self.entries)

    def only(self, selected: Sequence[bool]) -> bytes:
        """Returns the feed with the selected items alone."""
        first = zip(self.items[: len(selected)], selected, strict=True)
        chosen = [bytes(item) for item, is_selected in first if is_selected]
        items = msgspec.Raw(b"[" + b",".join(chosen) + b"]")
        return msgspec.json.encode({**self.members, "items": items})


def read_json_feed(body: bytes) -> JsonFeed | None:
    """Returns the feed, None for what is no JSON Feed. It is too slow for the event loop."""
    try:
        members = msgspec.json.decode(body.removeprefix(_MARK), type=dict[str, msgspec.Raw])
        version = msgspec.json.decode(members.get("version", b'""'), type=str)
        items = msgspec.json.decode(members.get("items", b"[]"), type=list[msgspec.Raw])
        if not version.startswith(VERSION):
            return None
        return JsonFeed(members, items, [_entry(item) for item in items[:MAX_ENTRIES]])
    except NO_JSON:
        return None


def _entry(raw: msgspec.Raw) -> FeedEntry:
    item = msgspec.json.decode(raw, type=dict[str, Any])
    content = [msgspec.json.encode(item[name]).decode() for name in _CONTENT if name in item]
    digest = digest_of(*content) if content else digest_of(bytes(raw).decode())
    name, link = item.get("id", ""), item.get("url", "")
    link = link if isinstance(link, str) else ""
    # A number counts as its text: generators of version 1.0 wrote such ids.
    name = name if isinstance(name, str) else msgspec.json.encode(name).decode()
    return FeedEntry(name or link or digest, digest)
