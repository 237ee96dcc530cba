"""Reduces items that are too large for a message to what fits in one."""

from __future__ import annotations

import msgspec

_PARTS = (
    ("id", "url", "external_url", "title", "summary", "image", "date_published", "date_modified",
     "authors", "tags", "language"),
    ("id", "url", "date_published", "date_modified"),
    ("id",),
)  # fmt: skip
"""The members that are left of an item, fewer and fewer: its content is left out first."""


def reduce_to(body: bytes, max_bytes: int) -> bytes | None:
    """Returns an item of `encode_item` without its content, or with still less, so that it has at
    most `max_bytes`; None if its id alone is longer. It is too slow for the event loop."""
    members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    for names in _PARTS:
        left = msgspec.json.encode({name: members[name] for name in names if name in members})
        if len(left) <= max_bytes:
            return left
    return None
