"""Times of Warren's HTTP interfaces, read."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds(text: str) -> float:
    """Seconds since 1970 of an RFC 3339 time, which has to be in UTC and end with Z."""
    assert text.endswith("Z"), text
    at = datetime.fromisoformat(text)
    assert at.tzinfo == UTC
    return at.timestamp()
