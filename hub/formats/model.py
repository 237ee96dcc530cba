"""The model of feeds, in the terms of JSON Feed 1.1, which all formats are read into.

An absent text is "", an absent list is empty. Dates are RFC 3339 texts, URLs are absolute. What
JSON Feed has no member for is in `extensions`, by names that begin with `_` (JSON Feed 1.1,
Extensions); in JSON these stand beside the other members.
"""

from __future__ import annotations

from typing import Any

import msgspec

VERSION = "https://jsonfeed.org/version/1.1"


class Author(msgspec.Struct, omit_defaults=True):
    """A person; an email address is a `url` with the scheme `mailto`."""

    name: str = ""
    url: str = ""
    avatar: str = ""


class Attachment(msgspec.Struct, omit_defaults=True):
    """An enclosure."""

    url: str
    mime_type: str = "application/octet-stream"
    title: str = ""
    size_in_bytes: int | None = None
    duration_in_seconds: float | None = None


class Item(msgspec.Struct, omit_defaults=True):
    """An entry of a feed; `id` is required."""

    id: str
    url: str = ""
    external_url: str = ""
    title: str = ""
    content_html: str = ""
    content_text: str = ""
    summary: str = ""
    """Plain text."""
    image: str = ""
    banner_image: str = ""
    date_published: str = ""
    date_modified: str = ""
    authors: list[Author] = msgspec.field(default_factory=list)
    tags: list[str] = msgspec.field(default_factory=list)
    language: str = ""
    attachments: list[Attachment] = msgspec.field(default_factory=list)
    extensions: dict[str, Any] = msgspec.field(default_factory=dict)


class FeedHub(msgspec.Struct):
    """A hub that the feed names; `type` is `WebSub` for all that this program knows."""

    type: str
    url: str


class FeedHead(msgspec.Struct, omit_defaults=True):
    """The feed without its items; `title` is required in all formats."""

    title: str = ""
    home_page_url: str = ""
    feed_url: str = ""
    description: str = ""
    user_comment: str = ""
    icon: str = ""
    favicon: str = ""
    language: str = ""
    authors: list[Author] = msgspec.field(default_factory=list)
    tags: list[str] = msgspec.field(default_factory=list)
    copyright: str = ""
    expired: bool = False
    hubs: list[FeedHub] = msgspec.field(default_factory=list)
    extensions: dict[str, Any] = msgspec.field(default_factory=dict)


class FeedDocument(msgspec.Struct):
    """A feed with its items, newest first."""

    head: FeedHead
    items: list[Item]


_ITEM_MEMBERS = frozenset(Item.__struct_fields__) - {"extensions"}


def encode_item(item: Item) -> bytes:
    """Returns the item as JSON Feed has it: the body of its message."""
    return msgspec.json.encode(members_of(item))


def decode_item(body: bytes) -> Item:
    """Returns an item of `encode_item`, or of a program that writes a number as its id. Raises
    `msgspec.DecodeError` for what is none."""
    members = msgspec.json.decode(body, type=dict[str, Any])
    extensions = {name: members.pop(name) for name in list(members) if name.startswith("_")}
    known = {name: members[name] for name in _ITEM_MEMBERS & members.keys()}
    if type(known.get("id")) in (int, float):
        known["id"] = msgspec.json.encode(known["id"]).decode()
    return msgspec.convert({**known, "extensions": extensions}, Item)


def members_of(value: Item | FeedHead) -> dict[str, Any]:
    """Returns the members with the extensions beside them."""
    members: dict[str, Any] = msgspec.to_builtins(value)
    extensions: dict[str, Any] = members.pop("extensions", {})
    return members | extensions
