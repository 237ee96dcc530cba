"""Times as this program's own HTTP interfaces write them: RFC 3339, UTC, with milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(at_s: float | None) -> str | None:
    """`2026-11-22T20:14:34.250Z` for seconds since 1970; None for none (0 is none too), and for
    what is after the year 9999, which the format can't say."""
    if not at_s:
        return None
    try:
        text = datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None
    return text.replace("+00:00", "Z")
