"""The hubs and the `feed_url` of a JSON Feed (version 1.1)."""

from __future__ import annotations

from typing import Any

import msgspec

from .found import FoundLinks

VERSION = "https://jsonfeed.org/version/"
NO_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of msgspec; `UnicodeDecodeError` is for bytes that are no UTF-8."""


class _JsonFeedHead(msgspec.Struct):
    version: Any = None
    feed_url: Any = None
    hubs: Any = None


def read_json_feed(body: bytes) -> FoundLinks:
    """Returns the links, none for a document that is no JSON Feed. It is too slow for the event
    loop."""
    found = FoundLinks()
    try:
        head = msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf"), type=_JsonFeedHead)
    except NO_JSON:
        return found
    if not (isinstance(head.version, str) and head.version.startswith(VERSION)):
        return found
    for hub in head.hubs if isinstance(head.hubs, list) else []:
        if isinstance(hub, dict) and str(hub.get("type")).lower() == "websub":
            found.add("hub", _text(hub.get("url")))
    found.add("self", _text(head.feed_url))
    return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
