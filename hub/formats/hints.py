"""Reads how often a feed wants to be polled, from the texts of its elements."""

from __future__ import annotations

from collections.abc import Iterable

from .read_feed import PollHints

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_PERIODS_S = {
    "hourly": 3_600,
    "daily": 86_400,
    "weekly": 7 * 86_400,
    "monthly": 30 * 86_400,
    "yearly": 365 * 86_400,
}
_MAX_TTL_MINUTES = 366 * 24 * 60
_MAX_FREQUENCY = 100_000


def read_hints(
    ttl: str, skip_hours: Iterable[str], skip_days: Iterable[str], period: str, frequency: str
) -> PollHints:
    """Returns the hints; texts that mean nothing count as absent.

    `ttl` is minutes, hours are from 0 to 23 (24 is 0 in RSS 0.91), and the frequency is how often
    a period the feed is updated, 1 without one (RSS 2.0; RSS 1.0 Syndication).
    """
    hours = {number % 24 for text in skip_hours if (number := _number(text, 24)) is not None}
    days = {_DAYS.index(day) for text in skip_days if (day := text.strip().lower()) in _DAYS}
    minutes = _number(ttl, _MAX_TTL_MINUTES)
    return PollHints(
        ttl_s=minutes * 60 if minutes else None,
        skip_hours=tuple(sorted(hours)) if len(hours) < 24 else (),
        skip_days=tuple(sorted(days)) if len(days) < 7 else (),
        update_interval_s=_interval_s(period, frequency),
    )


def _interval_s(period: str, frequency: str) -> int | None:
    if not (period.strip() or frequency.strip()):
        return None
    seconds = _PERIODS_S.get(period.strip().lower() or "daily")
    times = _number(frequency, _MAX_FREQUENCY) or 1
    return None if seconds is None else max(1, seconds // times)


def _number(text: str, most: int) -> int | None:
    """Returns a number from 0 to `most`, None for any other text."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        return None
    number = int(text)
    return number if number <= most else None
