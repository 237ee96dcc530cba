"""Dates as the formats write them: RFC 3339 in the model, RFC 822 in RSS."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

from .model import Item

EPOCH = "1970-01-01T00:00:00Z"


def from_parts(parts: time.struct_time | None) -> str:
    """Returns a date of feedparser, which is GMT, as RFC 3339; "" for None or an impossible one."""
    if parts is None:
        return ""
    try:
        return _written(datetime(*parts[:6], tzinfo=UTC))
    except ValueError:
        return ""


def parse(text: str) -> datetime | None:
    """Returns the time that a date of ISO 8601 or RFC 822 states, None for any other text."""
    text = text.strip()
    try:
        is_iso = text[:4].isdigit()
        found = datetime.fromisoformat(text.upper()) if is_iso else parsedate_to_datetime(text)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


def of_feed(text: str) -> str:
    """Returns a date of a feed as RFC 3339, "" for what is no date.

    Feeds write dates in a hundred ways, which feedparser knows.
    """
    found = normalised(text)
    if found or not text:
        return found
    # Not above: it takes 0.1 s to import, and few dates need it.
    from feedparser.datetimes import _parse_date

    return from_parts(_parse_date(text))


def normalised(text: str) -> str:
    """Returns the date as RFC 3339 in UTC, "" for what is no date."""
    found = parse(text)
    return "" if found is None else _written(found)


def as_rfc_822(text: str) -> str:
    """Returns a date of the model as RSS has it, "" for what is no date."""
    found = parse(text)
    return "" if found is None else format_datetime(found, usegmt=True)


def newest(items: Iterable[Item]) -> str:
    """Returns the latest date of the items, "" without any."""
    texts = (one.date_modified or one.date_published for one in items)
    found = [date for text in texts if (date := parse(text)) is not None]
    return _written(max(found)) if found else ""


def _written(date: datetime) -> str:
    return date.replace(microsecond=0).isoformat().replace("+00:00", "Z")
