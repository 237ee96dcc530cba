"""What is known of a topic of others; `tables.TopicRow` is how it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Topic:
    """Times are wall time in seconds, 0 for never."""

    key: str
    """Its routing key in the exchanges of topics."""
    url: str
    etag: str = ""
    last_modified: str = ""
    content_type: str = ""
    digest: str = ""
    """Of the content that subscribers have; empty before there was any."""
    known: Mapping[str, str] = field(default_factory=dict)
    """Of a feed, digests of its entries (`entries.Known`)."""
    checked_at: float = 0.0
    changed_at: float = 0.0
    failures: int = 0
    error: str = ""
    notice: str = ""
    due_at: float | None = None
    not_before: float = 0.0
