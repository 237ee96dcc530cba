"""Formats times for Warren's own HTTP interfaces: RFC 3339, UTC, with milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(at_s: float | None) -> str | None:
    """Formats seconds since 1970 as `2026-11-22T20:14:34.250Z`.

    Returns None for None and 0, and for times after the year 9999, which the format can't express.
    """
    if not at_s:
        return None
    try:
        text = datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None
    return text.replace("+00:00", "Z")
