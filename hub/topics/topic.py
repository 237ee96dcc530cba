"""An external topic as it is stored (`tables.TopicRow`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Topic:
    """An external topic and its last fetch. Times are wall time in seconds, 0 for never."""

    key: str
    """Its routing key in the exchanges of topics."""
    url: str
    etag: str = ""
    last_modified: str = ""
    content_type: str = ""
    digest: str = ""
    """The digest of the content distributed last; empty before the first."""
    known: Mapping[str, str] = field(default_factory=dict)
    """The digests of a feed's entries (`entries.Known`)."""
    checked_at: float = 0.0
    changed_at: float = 0.0
    failures: int = 0
    error: str = ""
    notice: str = ""
    due_at: float | None = None
    not_before: float = 0.0
