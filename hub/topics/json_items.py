"""JSON Feed: its items, and the same feed with only some of them (version 1.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..links.json_feed import NO_JSON, VERSION
from .entries import MAX_ENTRIES, Entry, digest_of

_MARK = b"\xef\xbb\xbf"
_SAYING = (
    "title", "content_html", "content_text", "summary", "url", "external_url", "attachments",
)  # fmt: skip


@dataclass(slots=True)
class JsonFeed:
    """Everything but the items stays as its publisher wrote it."""

    members: dict[str, msgspec.Raw]
    items: list[msgspec.Raw]
    entries: list[Entry]
    """Those of the first items, up to the limit."""

    @property
    def has_more(self) -> bool:
        return len(self.items) > len(self.entries)

    def only(self, selected: Sequence[bool]) -> bytes:
        first = zip(self.items[: len(selected)], selected, strict=True)
        items_kept = [bytes(item) for item, is_selected in first if is_selected]
        items = msgspec.Raw(b"[" + b",".join(items_kept) + b"]")
        return msgspec.json.encode({**self.members, "items": items})


def read_json_feed(body: bytes) -> JsonFeed | None:
    """None for what is no JSON Feed. Not for the event loop."""
    try:
        members = msgspec.json.decode(body.removeprefix(_MARK), type=dict[str, msgspec.Raw])
        version = msgspec.json.decode(members.get("version", b'""'), type=str)
        items = msgspec.json.decode(members.get("items", b"[]"), type=list[msgspec.Raw])
        if not version.startswith(VERSION):
            return None
        return JsonFeed(members, items, [_entry(item) for item in items[:MAX_ENTRIES]])
    except NO_JSON:
        return None


def _entry(raw: msgspec.Raw) -> Entry:
    item = msgspec.json.decode(raw, type=dict[str, Any])
    said = [msgspec.json.encode(item[name]).decode() for name in _SAYING if name in item]
    digest = digest_of(*said) if said else digest_of(bytes(raw).decode())
    name, link = item.get("id", ""), item.get("url", "")
    link = link if isinstance(link, str) else ""
    # A number is its text: generators of version 1.0 wrote ids so.
    name = name if isinstance(name, str) else msgspec.json.encode(name).decode()
    return Entry(name or link or digest, digest)
