"""The formats that are written and their media types, apart from their writers."""

from __future__ import annotations

from typing import Literal

Format = Literal["atom", "rss", "json"]
MEDIA_TYPES: dict[Format, str] = {
    "atom": "application/atom+xml; charset=utf-8",
    "rss": "application/rss+xml; charset=utf-8",
    "json": "application/feed+json; charset=utf-8",
}
